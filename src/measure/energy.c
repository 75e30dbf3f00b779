// SPDX-License-Identifier: Apache-2.0
//
// The energy of one run of a job, from a counter of the whole device.
//
//   method  the counter moves seldom (every 20 to 100 ms on an H200), so runs follow one
//           another without a pause, and what is counted lies between two of its moves: the
//           first that is seen, and the first after a window. What the device takes when
//           idle is part of it, as it is part of the bill.
#include "measure/parts.h"

static const double WINDOW_S = 0.4, STILL_S = 0.5;

typedef struct {
    double joules, at_s;
    int64_t runs;
} Reading;

// Works at least until so late, and on until the counter moves. False: it does not.
static bool work_on(const Meter *m, double until_s, Reading *r)
{
    double before = r->joules, late = until_s + STILL_S;
    do {
        if (!m->work(m->user, m->batch) || !m->read(m->user, &r->joules))
            return false;
        r->runs += m->batch;
        r->at_s = clock_s();
        if (r->at_s < until_s)
            before = r->joules;
    } while (r->joules == before && (r->at_s < late || r->at_s < until_s));
    return r->joules != before;
}

bool energy_take(const Meter *meter, double *joules, double *seconds)
{
    Reading first = {0}, last;
    if (!meter->read(meter->user, &first.joules) || !work_on(meter, clock_s(), &first))
        return false;
    last = first;
    if (!work_on(meter, first.at_s + WINDOW_S, &last))
        return false;
    double runs = (double)(last.runs - first.runs);
    *joules = (last.joules - first.joules) / runs;
    *seconds = (last.at_s - first.at_s) / runs;
    return *joules > 0;
}
