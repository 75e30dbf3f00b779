// SPDX-License-Identifier: Apache-2.0
//
// Terms of a candidate; see predict.h.

#include "calibrate/predict.h"

#include <math.h>
#include <string.h>

static const double LEAST_SHARE = 1.0 / 4096;

const char *terms_name(int term)
{
    if (term < RESOURCES)
        return resource_name[term];
    term -= RESOURCES;
    return term < DEMANDS ? demand_info[term].name : feature_info[term - DEMANDS].name;
}

bool terms_are(const Model *model)
{
    bool same = model->d == TERMS;
    for (int t = 0; same && t < TERMS; t++)
        same = strcmp(model->feature[t], terms_name(t)) == 0;
    return same;
}

bool terms_demands(const Weights *weights, const Demand *demand, int n, double term[TERMS],
                   double *seconds)
{
    const Overlap *o = &weights->overlap;
    double cost[DEMANDS], part[RESOURCES] = {0}, *share = &term[RESOURCES];
    if (!o->d || !n)
        return false;
    *seconds = weights_overlap(weights, demand, n, cost);
    for (int d = 0; d < DEMANDS; d++) {
        share[d] = 0;
        for (int k = 0; k < n; k++)
            share[d] += o->weight[d] * demand[k].launches * demand[k].value[d];
        part[demand_info[d].resource] += share[d];
    }
    for (int r = 0; r < RESOURCES; r++)
        term[r] = log2(fmax(part[r] / *seconds, LEAST_SHARE));
    for (int d = 0; d < DEMANDS; d++)
        share[d] = log2(fmax(share[d] / *seconds, LEAST_SHARE));
    return isfinite(*seconds) && *seconds > 0;
}

bool terms_unit(const Weights *weights, const Unit *unit, const FeatureSetting *setting,
                Arena *arena, double term[TERMS], double *seconds)
{
    Demand *demand;
    int n = weights->overlap.d
                ? demand_unit(unit, setting, arena, &demand, &term[RESOURCES + DEMANDS])
                : 0;
    return terms_demands(weights, demand, n, term, seconds);
}
