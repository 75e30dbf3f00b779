// SPDX-License-Identifier: Apache-2.0
//
// Every fusion of the worked example, in every granularity, as kernels that run: each set's
// kernels load values of the reference and must store what the reference has. The number of
// instances is odd, so that the last block is not full.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INSTANCES = 203 };

typedef struct {
    Arena *arena;
    Diags diags;
    Script *script;
    FuseSpace *space;
    ScriptData *data;
    const char *device;
    Rig *rig;
    int right, wrong;
    const char *text[4096];
} Fixture;

static Fixture *fixture_new(const char *path, const char *device)
{
    bool ok;
    Fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_new();
    f->device = device;
    diags_init(&f->diags, f->arena);
    f->script = script_load(path, NULL, 0, &f->diags, &ok);
    if (!ok)
        explain(&f->diags);
    assert_true(ok);
    f->space = fuse_space(f->script, 0, f->arena);
    Workplace p = place_here(f->arena);
    f->data = script_inputs(f->script, INSTANCES, 1, f->arena);
    ok = script_expect(f->script, f->data, &p, &f->diags);
    if (!ok)
        explain(&f->diags);
    assert_true(ok);
    return f;
}

static void fixture_free(Fixture *f)
{
    rig_close(f->rig);
    script_free(f->script);
    arena_free(f->arena);
    free(f);
}

// What a fusion loads holds the reference's values; what it stores is compared with them.
static Rig *open_rig(Fixture *f, const Fusion *fusion, int *buffer_of, int *nbuffer)
{
    RigBuffer *buffer = NEW_ARRAY(f->arena, RigBuffer, f->script->nelem);
    int elem[PLACES_MAX], n = fused_arguments(f->script, fusion, elem);
    for (int e = 0; e < f->script->nelem; e++)
        buffer_of[e] = -1;
    for (int i = 0; i < n; i++) {
        bool load = fusion_loads(f->script, fusion, elem[i]);
        buffer_of[elem[i]] = i;
        buffer[i] = (RigBuffer){.name = f->script->elem[elem[i]].name,
                                .scalar = S_FLOAT,
                                .count = INSTANCES * f->script->elem[elem[i]].words,
                                .init = load ? f->data->value[elem[i]] : NULL,
                                .expect = load ? NULL : f->data->value[elem[i]]};
    }
    Workplace p = place_here(f->arena);
    RigConfig config = {.device = f->device,
                        .folder = p.folder,
                        .nbuffer = n,
                        .buffer = buffer,
                        .tolerance = 1e-4,
                        .samples = 1,
                        .workers = 1,
                        .build_limit_s = 300,
                        .run_limit_s = 300};
    *nbuffer = n;
    bool ok = !f->rig || rig_fill(f->rig, &config, &f->diags);
    if (!f->rig)
        f->rig = rig_open(&config, &f->diags);
    if (!ok || !f->rig)
        explain(&f->diags);
    assert_true(ok && f->rig);
    return f->rig;
}

static double count(void *user, int job, Trial *trial)
{
    Fixture *f = user;
    f->right += trial->status == TRIAL_OK;
    if (trial->status != TRIAL_OK && f->wrong++ < 5)
        print_error("%s: %s: %s\n", f->text[job], trial_status_name[trial->status],
                    trial->log ? trial->log : "");
    return 0;
}

// Steps through all granularities of a fusion's calls; false after the last.
static bool next_impls(const Script *script, const Fusion *f, uint8_t *impl)
{
    for (int i = 0; i < f->ncall; i++) {
        if (++impl[i] < script->call[f->order[i]].function->nimpl)
            return true;
        impl[i] = 0;
    }
    return false;
}

static const Choice variants[] = {
    {.instances = 7},
    {.instances = 8, .copy = COPY_FOURS},
    {.instances = 8, .early = true, .registers = true, .copy = COPY_FOURS},
    {.instances = 9, .registers = true},
    {.instances = 12, .early = true, .copy = COPY_WORDS},
    {.instances = 16, .early = true, .registers = true, .copy = COPY_ASYNC},
    {.instances = 4, .early = true, .copy = COPY_ASYNC},
};

// All granularities, or every `stride`th of them, each in one of the variants in turn.
static void run_fusion(Fixture *f, const Fusion *fusion, int stride)
{
    int buffer_of[ELEMS_MAX], nbuffer, n = 0, at = 0;
    Rig *rig = open_rig(f, fusion, buffer_of, &nbuffer);
    const DeviceInfo *device = rig_device(rig);
    Job *job = NEW_ARRAY(f->arena, Job, 256);
    Buf *source = NEW_ARRAY(f->arena, Buf, 256), prelude, text;
    buf_init(&prelude);
    buf_init(&text);
    fused_prelude(device->target, &prelude);
    uint8_t impl[MEMBERS_MAX] = {0};
    do {
        Solution *s = NEW(f->arena, Solution);
        Choice choice = variants[at % COUNTOF(variants)];
        memcpy(choice.impl, impl, sizeof impl);
        s->n = 1;
        if (at++ % stride)
            continue;
        assert_true(fused_make(f->script, fusion, &choice, device->local_bytes,
                               device->max_group, &s->kernel[0]));
        buf_init(&source[n]);
        const char *name = arena_printf(f->arena, "k%d_", n);
        solution_job(f->script, s, INSTANCES, buffer_of, nbuffer, device->target, name,
                     prelude.text, f->arena, &source[n], &job[n]);
        buf_clear(&text);
        solution_print(&text, f->script, s);
        f->text[n++] = arena_strdup(f->arena, text.text);
    } while (next_impls(f->script, fusion, impl));
    assert_true(rig_run(rig, job, n, INFINITY, count, f, &f->diags));
    for (int i = 0; i < n; i++)
        buf_release(&source[i]);
    buf_release(&prelude);
    buf_release(&text);
}

// Three sets of the example; all, and all granularities, where FUSE_ALL is set (minutes).
static void run_device(const char *device)
{
    bool all = getenv("FUSE_ALL") != NULL;
    Fixture *f = fixture_new("examples/fusion/paper.fws", device);
    for (int i = 0; i < f->space->fusion.len; i++) {
        const Fusion *fusion = &f->space->fusion.at[i];
        if (all || fusion->set == 7 || fusion->set == 56 || fusion->set == 63)
            run_fusion(f, fusion, all ? 1 : fusion->set == 63 ? 31 : 9);
    }
    print_message("%s: %d kernels right, %d wrong\n", device, f->right, f->wrong);
    assert_int_equal(f->wrong, 0);
    assert_true(f->right >= (all ? 425 : 10));
    fixture_free(f);
}

int main(int argc, char **argv)
{
    return main_on_devices(argc, argv, run_device);
}
