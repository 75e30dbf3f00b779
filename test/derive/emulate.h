// SPDX-License-Identifier: Apache-2.0
//
// Candidates for CUDA run on the host, as emulate.hpp has it.

#ifndef FW_TEST_EMULATE_H
#define FW_TEST_EMULATE_H

#include "problem/problem.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A prelude without what stands between two lines, which emulate.hpp has of its own.
static inline void put_without(Buf *out, const char *text, const char *from, const char *to)
{
    const char *start = strstr(text, from), *end = start ? strstr(start, to) : NULL;
    if (!end) {
        buf_puts(out, text);
        return;
    }
    buf_write(out, text, (size_t)(start - text));
    buf_puts(out, end + strlen(to));
}

static inline void put_prelude_here(Buf *out, const char *prelude)
{
    static const char *const without[][2] = {
        {"// Copies from global to shared memory", "// End of the copies.\n"},
        {"// Instructions of matrix units", "// End of the instructions.\n"},
        {"#include <cuda_fp16.h>", "\n"}};
    Buf text[COUNTOF(without)];
    for (int i = 0; i < COUNTOF(without); i++) {
        text[i] = buf_new();
        put_without(&text[i], i ? text[i - 1].text : prelude, without[i][0], without[i][1]);
    }
    buf_puts(out, text[COUNTOF(without) - 1].text);
    for (int i = 0; i < COUNTOF(without); i++)
        buf_release(&text[i]);
}

// Shared memory that the launch asks for is an array there.
static inline void put_source(Buf *out, const char *source)
{
    static const char shared[] = "extern __shared__";
    size_t from = out->len;
    buf_puts(out, source);
    for (char *at = out->text + from; (at = strstr(at, shared)) != NULL;)
        memset(at + strlen("extern"), ' ', strlen(shared) - strlen("extern"));
}

// A function for each launch, and one that does all of them.
static inline void put_launches(Buf *out, const Job *job)
{
    for (int i = 0; i < job->nlaunch; i++) {
        const JobLaunch *launch = &job->launch[i];
        buf_printf(out, "static void launch%d(void *const *arg)\n{\n    %s(", i,
                   launch->kernel);
        for (int k = 0; k < launch->narg; k++)
            if (launch->arg[k].kind == ARG_INT)
                buf_printf(out, "%s%d", k ? ", " : "", (int)launch->arg[k].number);
            else if (launch->arg[k].kind == ARG_VALUE)
                buf_printf(out, "%s*(const %s *)arg[%d]", k ? ", " : "",
                           scalar_info[launch->arg[k].scalar].c, launch->arg[k].buffer);
            else
                buf_printf(out, "%sAny{arg[%d]}", k ? ", " : "", launch->arg[k].buffer);
        buf_puts(out, ");\n}\n");
    }
    buf_puts(out, "extern \"C\" void run(void *const *arg)\n{\n");
    for (int i = 0; i < job->nlaunch; i++) {
        const JobLaunch *l = &job->launch[i];
        buf_printf(out, "    emulate({%d, %d, %d}, {%d, %d, %d}, launch%d, arg);\n",
                   (int)(l->global[0] / l->local[0]), (int)(l->global[1] / l->local[1]),
                   (int)(l->global[2] / l->local[2]), (int)l->local[0], (int)l->local[1],
                   (int)l->local[2], i);
    }
    buf_puts(out, "}\n");
}

// Compiles a job and runs it on buffers; false if there is no compiler for C++.
static inline bool emulate_job(const Job *job, void **buffer)
{
    char folder[] = "/tmp/forewarp-emulate-XXXXXX", path[64], command[512];
    Buf text = buf_new();
    assert_non_null(mkdtemp(folder));
    buf_printf(&text, "#include \"%s/test/derive/emulate.hpp\"\n", getcwd(command, 256));
    put_prelude_here(&text, job->prelude);
    put_source(&text, job->source);
    put_launches(&text, job);
    snprintf(path, sizeof path, "%s/k.cpp", folder);
    assert_true(file_write(path, text.text, text.len));
    snprintf(
        command, sizeof command,
        "c++ -std=c++17 -O1 -w -U_FORTIFY_SOURCE -ffp-contract=off -fno-strict-aliasing "
        "-fPIC -shared -o %s/k.so %s 2>%s/log || { cat %s/log; exit 1; }",
        folder, path, folder, folder);
    bool ok = system("c++ --version >/dev/null 2>&1") == 0;
    if (ok) {
        assert_int_equal(system(command), 0);
        snprintf(path, sizeof path, "%s/k.so", folder);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        void (*run)(void *const *arg);
        assert_non_null(library);
        void *symbol = dlsym(library, "run");
        memcpy(&run, &symbol, sizeof run);
        run(buffer);
        dlclose(library);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    buf_release(&text);
    return ok;
}

// What a candidate computes of a problem's inputs, run so.
static inline bool emulate_candidate(const Candidate *candidate, const ProblemData *data,
                                     Arena *arena, void **raw)
{
    const Job *job = &candidate->job;
    int n = data->ninput + data->noutput;
    void **buffer = NEW_ARRAY(arena, void *, n + job->nscratch);
    for (int i = 0; i < n; i++) {
        const RunnerBuffer *b = &data->buffer[i];
        size_t bytes = (size_t)b->count * scalar_device_bytes(b->scalar);
        buffer[i] = arena_alloc(arena, bytes + 64); // which aligns to 16 at least
        if (b->init)
            memcpy(buffer[i], b->init, bytes);
        raw[i] = buffer[i];
    }
    for (int i = 0; i < job->nscratch; i++)
        buffer[n + i] = arena_alloc(arena, (size_t)job->scratch_bytes[i]);
    return emulate_job(job, buffer);
}

#endif
