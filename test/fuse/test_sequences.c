// SPDX-License-Identifier: Apache-2.0
//
// Every script of examples/fusion on an odd number of instances: the best cover (several
// with FUSE_ALL) and that of single calls, each with implementations, blocks and ways of
// copying drawn at random, against the reference.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INSTANCES = 103, COVERS_ALL = 3, JOBS = 64 };

typedef struct {
    const char *script;
    int right, wrong, strips;
    const char *text[JOBS];
} Count;

static double count(void *user, int job, Trial *trial)
{
    Count *c = user;
    c->right += trial->status == TRIAL_OK;
    if (trial->status != TRIAL_OK && c->wrong++ < 5)
        print_error("%s: %s: %s: %s\n", c->script, c->text[job],
                    trial_status_name[trial->status], trial->log ? trial->log : "");
    return 0;
}

static bool draw_kernel(const Script *script, const Fusion *fusion,
                        const DeviceInfo *device, Rng *rng, bool strips,
                        FusedKernel *kernel)
{
    strips = strips && strcmp(device->target, "c") != 0;
    for (int tries = 0; tries < 2000; tries++) {
        Choice c = {.instances = 1 + (int)rng_below(rng, 12),
                    .serial = (int)rng_below(rng, 4),
                    .early = rng_below(rng, 2),
                    .registers = rng_below(rng, 2),
                    .copy = (CopyKind)rng_below(rng, COPY_STRIPS)};
        if (strips && tries < 1000)
            c.copy = COPY_STRIPS;
        for (int i = 0; i < fusion->ncall; i++) {
            int n = script->call[fusion->order[i]].function->nimpl;
            c.impl[i] = (uint8_t)rng_below(rng, (uint64_t)n);
        }
        if (fused_make(script, fusion, &c, fused_local_bytes(device), device->max_group,
                       kernel))
            return true;
    }
    return false;
}

// The cheapest covers by words, and the single calls.
static int choose_covers(const FuseSpace *space, Arena *arena, Cover *out)
{
    CoverUnit *unit = NEW_ARRAY(arena, CoverUnit, space->fusion.len);
    for (int i = 0; i < space->fusion.len; i++)
        unit[i] = (CoverUnit){space->fusion.at[i].set, 1e-3 + space->fusion.at[i].moved, i};
    Cover *cover;
    int n = cover_best(&space->graph, unit, space->fusion.len,
                       getenv("FUSE_ALL") ? COVERS_ALL : 1, arena, &cover);
    memcpy(out, cover, sizeof *cover * (size_t)n);
    Cover *single = &out[n];
    *single = (Cover){.n = space->graph.n};
    for (int v = 0; v < space->graph.n; v++)
        for (int i = 0; i < space->fusion.len; i++)
            if (space->fusion.at[i].set == (Set)1 << v)
                single->unit[v] = i;
    return n + 1;
}

static void run_jobs(Rig *rig, const Script *script, const FuseSpace *space,
                     const ScriptData *data, Arena *arena, Count *c, Diags *diags)
{
    const DeviceInfo *device = rig_device(rig);
    Job job[JOBS];
    Buf source[JOBS], prelude, text;
    Cover cover[COVERS_ALL + 1];
    int n = 0, covers = choose_covers(space, arena, cover);
    Rng rng;
    rng_seed(&rng, 5);
    buf_init(&prelude);
    buf_init(&text);
    fused_prelude(device->target, &prelude);
    // The best cover and that of single calls once more, by strips where they can be.
    for (int k = 0; k < covers + 2; k++) {
        Solution *s = NEW(arena, Solution);
        bool strips = k >= covers;
        const Cover *from = &cover[k < covers ? k : k == covers ? 0 : covers - 1];
        for (s->n = 0; s->n < from->n; s->n++)
            assert_true(draw_kernel(script, &space->fusion.at[from->unit[s->n]], device,
                                    &rng, strips, &s->kernel[s->n]));
        buf_init(&source[n]);
        solution_job(script, s, INSTANCES, data->buffer_of, data->nbuffer, device->target,
                     arena_printf(arena, "k%d_", n), prelude.text, arena, &source[n],
                     &job[n]);
        buf_clear(&text);
        solution_print(&text, script, s);
        Solution *again = NEW(arena, Solution);
        assert_true(solution_parse(space, text.text, device, again, diags));
        bool has = strstr(text.text, "strips") != NULL;
        c->strips += has;
        c->text[n] = arena_strdup(arena, text.text);
        if (strips && !has)
            buf_release(&source[n]);
        else
            n++;
    }
    bool ok = rig_run(rig, job, n, INFINITY, count, c, diags);
    if (!ok)
        explain(diags);
    assert_true(ok);
    for (int i = 0; i < n; i++)
        buf_release(&source[i]);
    buf_release(&prelude);
    buf_release(&text);
}

// On *rig, which is opened for the first script: to load a compiler takes as long as a few
// kernels.
static void run_script(const char *path, const char *device, Rig **rig, Count *c)
{
    Arena *arena = arena_new();
    Diags diags;
    bool ok;
    diags_init(&diags, arena);
    // Rows of one script are of whole fours.
    static const Binding row[] = {{"N", 300}};
    bool fours = strstr(path, "gemver") != NULL;
    Script *script = script_load(path, row, fours, &diags, &ok);
    Workplace place = place_here(arena);
    ScriptData *data = ok ? script_inputs(script, INSTANCES, 1, arena) : NULL;
    if (data && !script_expect(script, data, &place, &diags))
        data = NULL;
    RigConfig config = {.device = device,
                        .folder = place.folder,
                        .tolerance = 1e-4,
                        .nbuffer = data ? data->nbuffer : 0,
                        .buffer = data ? data->buffer : NULL,
                        .samples = 1,
                        .workers = 1,
                        .build_limit_s = 300,
                        .run_limit_s = 300};
    ok = data && (!*rig || rig_fill(*rig, &config, &diags));
    if (ok && !*rig)
        *rig = rig_open(&config, &diags);
    c->script = path;
    if (!ok || !*rig)
        explain(&diags);
    assert_true(ok && *rig);
    run_jobs(*rig, script, fuse_space(script, 0, arena), data, arena, c, &diags);
    script_free(script);
    arena_free(arena);
}

static void run_device(const char *device)
{
    Count c = {0};
    Rig *rig = NULL;
    int scripts = 0;
    DIR *folder = opendir("examples/fusion");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".fws") != 0 || strcmp(entry->d_name, "paper.fws") == 0)
            continue;
        snprintf(path, sizeof path, "examples/fusion/%s", entry->d_name);
        run_script(path, device, &rig, &c);
        scripts++;
    }
    closedir(folder);
    rig_close(rig);
    print_message("%s: %d scripts, %d solutions right, %d wrong\n", device, scripts,
                  c.right, c.wrong);
    assert_int_equal(c.wrong, 0);
    assert_true(scripts >= 11 && c.right >= 2 * scripts);
    assert_true(c.strips >= 12 || strcmp(device, "host") == 0);
}

int main(int argc, char **argv)
{
    return main_on_devices(argc, argv, run_device);
}
