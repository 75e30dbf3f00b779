// SPDX-License-Identifier: Apache-2.0
//
// json: values that JSON has no word for, and members that may be absent.

#ifndef FW_MEASURE_JSON_H
#define FW_MEASURE_JSON_H

#include <jansson.h>
#include <stdint.h>

// Text of any bytes: JSON refuses what is not UTF-8, so such bytes become '?'.
json_t *json_text(const char *text);
json_t *json_texts(const char *const *text, int n);              // a list of these
const char *json_text_of(const json_t *object, const char *key); // "" if absent
double json_number_of(const json_t *object, const char *key, double otherwise);
int64_t json_int_of(const json_t *object, const char *key, int64_t otherwise);
// JSON has no infinity: such a number is left out, and comes back as `otherwise`.
void json_set_number(json_t *object, const char *key, double x);
json_t *json_finite(double x); // null for what is not
json_t *json_whole(double x);  // an integer where it is one

#endif
