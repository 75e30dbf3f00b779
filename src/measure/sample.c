// SPDX-License-Identifier: Apache-2.0
//
// The timing protocol: two warm-up runs, then samples until enough are valid; the minimum
// counts.
//
//   method  a sample taken while other work held a core away from a CPU device is not
//           valid: it used less processor time than its cores times its length. Measured
//           on PoCL, the minimum of five such samples ranks kernels on a loaded machine as
//           well as on an idle one; the median does not.
//
// An invalid sample is only ever too long, so all of them count for the minimum: validity
// only decides when to stop. Runs too short to judge are taken as they are.
//
// The processor time of a run is never less than what the run takes alone either, so the
// smaller of the two counts: on several cores the time, unless other work held it up. Where
// one core does all the work they are the same but for what disturbed the run, and every
// sample is valid: two records of a template on PoCL, made beside eight other processes,
// are 31 % apart on average without this, 15 % with it (convolution, 512 x 512, 57 points),
// and with ten samples 2.1 % (256 x 256, 156 points).
//
// Rarely that clock reads far too little: two of 38,770 runs showed a twentieth of the time
// of the nine other runs of their point, and each was the best of all points. So the least
// sample does not count if no other is near it.
#include "measure/parts.h"

#include <math.h>
#include <string.h>

enum { WARM_UPS = 2, GIVE_UP = 20 };
static const double SHORT_NS = 2e5, LONG_NS = 1e8, BUSY = 0.85, CUT = 3, NEAR = 2;

typedef struct {
    double time_ns[TRIAL_SAMPLES], best_ns; // best: warm-ups too
    bool valid[TRIAL_SAMPLES];
    int n, nvalid;
} Samples;

static bool is_valid(const Sampler *sampler, double time_ns, double cpu_ns)
{
    return sampler->cores_in_use <= 1 || time_ns < SHORT_NS ||
           cpu_ns >= BUSY * sampler->cores_in_use * time_ns;
}

static bool is_poor(const Sampler *sampler, const Samples *s)
{
    return s->best_ns > CUT * sampler->cutoff_ns;
}

static DeviceStatus run_once(const Sampler *sampler, double *time_ns, double *cpu_ns)
{
    DeviceStatus status = sampler->run(sampler->user, time_ns, cpu_ns);
    if (status == DEV_OK && sampler->cores_in_use > 0)
        *time_ns = MIN(*time_ns, *cpu_ns);
    return status;
}

static DeviceStatus take_one(const Sampler *sampler, Samples *s)
{
    double time_ns = 0, cpu_ns = 0;
    DeviceStatus status = run_once(sampler, &time_ns, &cpu_ns);
    if (status != DEV_OK)
        return status;
    s->time_ns[s->n] = time_ns;
    s->valid[s->n] = is_valid(sampler, time_ns, cpu_ns);
    s->nvalid += s->valid[s->n++];
    s->best_ns = MIN(s->best_ns, time_ns);
    return DEV_OK;
}

// A run that is long, or already known to be poor, is not warmed up twice. A long one that
// took all the time there was is a sample itself.
static DeviceStatus warm_up(const Sampler *sampler, double start_s, Samples *s)
{
    DeviceStatus status = DEV_OK;
    for (int i = 0; i < WARM_UPS && status == DEV_OK; i++) {
        status = take_one(sampler, s);
        bool is_long = s->best_ns > LONG_NS;
        if (is_long && clock_s() - start_s > sampler->limit_s)
            break;
        s->n = s->nvalid = 0;
        if (is_long || is_poor(sampler, s))
            break;
    }
    return status;
}

// The sample that cannot be, as the processor's clock read too little; -1: none.
static int misread(const Sampler *sampler, const Samples *s)
{
    int least = 0;
    double next = INFINITY;
    for (int i = 1; i < s->n; i++) {
        bool less = s->time_ns[i] < s->time_ns[least];
        next = MIN(next, s->time_ns[less ? least : i]);
        least = less ? i : least;
    }
    bool alone = s->n > 2 && next > SHORT_NS && next > NEAR * s->time_ns[least];
    return sampler->cores_in_use > 0 && alone ? least : -1;
}

static int counted(const Sampler *sampler, const Samples *s)
{
    int skipped = misread(sampler, s);
    return s->nvalid - (skipped >= 0 && s->valid[skipped]);
}

// Keeps the valid samples, or all where there are too few of them.
static void report(const Sampler *sampler, const Samples *s, int wanted, Trial *trial)
{
    bool all = counted(sampler, s) < wanted;
    int skipped = misread(sampler, s);
    trial->time_ns = INFINITY;
    for (int i = 0; i < s->n; i++) {
        if (i == skipped)
            continue;
        trial->time_ns = MIN(trial->time_ns, s->time_ns[i]);
        if (all || s->valid[i])
            trial->sample_ns[trial->nsample++] = s->time_ns[i];
    }
}

DeviceStatus sample_take(const Sampler *sampler, Trial *trial)
{
    Samples s = {.best_ns = INFINITY};
    int wanted = MIN(sampler->wanted, TRIAL_SAMPLES);
    int most = MIN(MAX(GIVE_UP, 2 * wanted), TRIAL_SAMPLES);
    double start = clock_s();
    DeviceStatus status = warm_up(sampler, start, &s);
    while (status == DEV_OK && counted(sampler, &s) < wanted && s.n < most) {
        if (s.n > 0 && clock_s() - start > sampler->limit_s)
            break;
        status = take_one(sampler, &s);
        if (status == DEV_OK && is_poor(sampler, &s)) {
            trial->cut = true;
            break;
        }
    }
    trial->nsample = 0;
    report(sampler, &s, wanted, trial);
    trial->timing_s = clock_s() - start;
    return status;
}
