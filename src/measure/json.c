// SPDX-License-Identifier: Apache-2.0
#include "measure/json.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *text)
{
    json_t *whole = json_string(text ? text : "");
    if (whole)
        return whole;
    AUTO_FREE char *copy = xstrdup(text);
    bool plain;
    size_t len = strlen(copy);
    for (size_t i = 0, n; i < len; i += n) {
        n = text_step(copy + i, len - i, &plain);
        if (n == 1 && (unsigned char)copy[i] >= 0x80)
            copy[i] = '?';
    }
    whole = json_string(copy);
    return whole;
}

json_t *json_texts(const char *const *text, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_text(text[i]));
    return list;
}

const char *json_text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

double json_number_of(const json_t *object, const char *key, double otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

int64_t json_int_of(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

void json_set_number(json_t *object, const char *key, double x)
{
    if (isfinite(x))
        json_object_set_new(object, key, json_real(x));
}

json_t *json_finite(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *json_whole(double x)
{
    return x == floor(x) && fabs(x) < 0x1p53 ? json_integer((json_int_t)x) : json_real(x);
}
