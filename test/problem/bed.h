// SPDX-License-Identifier: Apache-2.0
//
// One runner for all problems that a test tries on a device: to load a compiler takes as
// long as a few kernels.

#ifndef FW_TEST_BED_H
#define FW_TEST_BED_H

#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

typedef struct {
    RunnerConfig config; // its buffers and tolerance are of the latest problem
    char folder[64];
    Runner *runner; // NULL until the first
} Bed;

// config: the device and the limits.
static void bed_open(Bed *bed, RunnerConfig config)
{
    *bed = (Bed){.config = config, .folder = "/tmp/forewarp-test-XXXXXX"};
    assert_non_null(mkdtemp(bed->folder));
}

static void bed_close(Bed *bed)
{
    runner_close(bed->runner);
    remove_tree(bed->folder);
}

static bool bed_fill(Bed *bed, const ProblemData *data, Diags *diags)
{
    bed->config.folder = bed->folder;
    bed->config.nbuffer = data->ninput + data->noutput;
    bed->config.buffer = data->buffer;
    bed->config.tolerance = data->tolerance;
    if (bed->runner)
        return runner_fill(bed->runner, &bed->config, diags);
    bed->runner = runner_open(&bed->config, diags);
    return bed->runner != NULL;
}

// Random inputs of a bound program, and what the interpreter makes of them, in the bed;
// NULL with diagnostics.
static ProblemData *bed_expect(Bed *bed, const Problem *problem, Arena *arena, Diags *diags)
{
    Value **inputs = problem_inputs(problem, 1, arena), *expect;
    ProblemData *data = data_new(problem, inputs, arena);
    if (!ir_eval(problem->bound, inputs, arena, &expect, 0, diags))
        return NULL;
    data_expect(data, expect, arena);
    return bed_fill(bed, data, diags) ? data : NULL;
}

// What a bound program derives for the bed's device, whose whole space is wanted, also
// where it is a CPU. Owner: the caller, derive_free.
static inline Derivation *bed_derive(const Bed *bed, const Problem *problem, Diags *diags)
{
    DeviceInfo info = *runner_device(bed->runner);
    info.is_cpu = false;
    Derivation *derivation = derive_new(problem->general, &info, diags);
    assert_non_null(derivation);
    return derivation;
}

#endif
