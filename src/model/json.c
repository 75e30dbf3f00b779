// SPDX-License-Identifier: Apache-2.0
//
// Arrays of numbers in JSON, all 17 digits, so that a model loaded predicts the same bits.
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

json_t *json_numbers(const double *at, int64_t n)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(array, json_real(at[i]));
    return array;
}

double *json_get_numbers(const json_t *json, const char *key, int64_t n)
{
    const json_t *array = json_object_get(json, key);
    if (!json_is_array(array) || (int64_t)json_array_size(array) != n)
        return NULL;
    double *at = xcalloc((size_t)n + 1, sizeof *at);
    for (int64_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(array, (size_t)i);
        at[i] = json_number_value(item);
        if (!json_is_number(item) || !isfinite(at[i])) {
            free(at);
            return NULL;
        }
    }
    return at;
}
