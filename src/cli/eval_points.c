// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval points RECORD...: the points of recorded spaces as numbers, as models of a
// search see them, and what each cost (bench/papers/stages.py).

#include "cli/cli.h"

#include "measure/json.h"
#include "search/encode.h"
#include "store/recorded.h"

#include <math.h>

static json_t *points_json(const Recorded *recorded)
{
    json_t *rows = json_array(), *costs = json_array();
    double best_ns = INFINITY;
    int repeated;
    double noise = recorded_noise(recorded, &repeated);
    Encoding *encoding = encode_new(recorded->space);
    encode_launches(encoding, recorded_launches(recorded));
    AutoMatrix x = matrix_new(1, encoding->d);
    for (int i = 0; i < recorded->n; i++) {
        Point point;
        double cost = recorded_cost(recorded, &recorded->at[i]);
        space_point(recorded->space, (uint64_t)i, &point);
        encode_point(encoding, &point, x.at);
        json_array_append_new(rows, json_numbers(x.at, x.d));
        json_array_append_new(costs, json_finite(cost));
        best_ns = fmin(best_ns, cost);
    }
    encode_free(encoding);
    return json_pack("{s:s, s:s, s:i, s:i, s:f, s:o, s:i, s:o, s:o}", "record",
                     recorded->name, "device", recorded->device, "points", recorded->n,
                     "ran", recorded->nvalid, "best_ns", best_ns, "noise",
                     json_finite(noise), "noise_points", repeated, "cost", costs, "rows",
                     rows);
}

int eval_points(Options *o)
{
    json_t *json = json_array();
    bool ok = true;
    for (int i = 1; i < o->nlist && ok; i++) {
        Recorded *recorded = recorded_read(o->list[i], NULL, &o->diags);
        ok = recorded && json_array_append_new(json, points_json(recorded)) == 0;
        recorded_free(recorded);
    }
    return cli_json_exact(o, json) && ok ? 0 : 1;
}
