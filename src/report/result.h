// SPDX-License-Identifier: Apache-2.0
//
// A result as text, from the same value that is written as JSON: single values a line each,
// a list of objects as a table, and lists within its rows as tables of their own, whose
// first columns say which row they are of. Lists of numbers are in the JSON alone.

#ifndef FW_REPORT_RESULT_H
#define FW_REPORT_RESULT_H

#include "base/base.h"

#include <jansson.h>

void report_result(Buf *out, json_t *result);

#endif
