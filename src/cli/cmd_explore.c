// SPDX-License-Identifier: Apache-2.0
//
// forewarp explore: many ways to lower a program, with their features, and with their times
// where a device is asked for.

#include "cli/cli.h"

#include "calibrate/describe.h"
#include "calibrate/predict.h"
#include "evaluate/explore.h"

#include <math.h>
#include <unistd.h>

static void show(void *user, const char *stage, int64_t done, int64_t of)
{
    screen_show(user, &(Moment){.stage = stage,
                                .what = "points",
                                .done = done,
                                .of = of,
                                .budget_s = INFINITY,
                                .best_ns = INFINITY});
}

static const char *command_text(Options *o, const ExploreRequest *request)
{
    Buf text = buf_new();
    buf_printf(&text, "forewarp explore %s -s ", o->file);
    for (int i = 0; i < o->nbinding; i++)
        buf_printf(&text, "%s%s=%lld", i ? "," : "", o->binding[i].name,
                   (long long)o->binding[i].value);
    buf_printf(&text, " -n %d --threads %d --seed %llu", request->expressions,
               request->threads, (unsigned long long)request->seed);
    if (request->derived)
        buf_puts(&text, " --derived");
    if (o->model)
        buf_printf(&text, " --model %s", o->model);
    if (o->unchecked)
        buf_puts(&text, " --unchecked");
    if (o->again)
        buf_printf(&text, " --again %s", o->again);
    if (o->written)
        buf_puts(&text, " --written");
    if (request->device)
        buf_printf(&text, " -d %s", request->device);
    if (o->device_model)
        buf_printf(&text, " --device-model %s", o->device_model);
    if (request->sample)
        buf_printf(&text, " --sample %lld", (long long)request->sample);
    return buf_keep(&text, o->arena);
}

// A file of weights, or a model.
static bool load_predictor(Options *o, const DeviceInfo *info, ExploreRequest *request)
{
    Predictor *by = NEW(o->arena, Predictor);
    Weights *weights = NEW(o->arena, Weights);
    Diags quiet = {.arena = o->arena};
    request->by = by;
    if (weights_load(weights, o->model, NULL, &quiet))
        by->weights = weights;
    return by->weights ||
           predictor_load(by, info, o->model, cli_models_folder(o), o->arena, &o->diags);
}

static bool make_request(Options *o, const Problem *problem, Screen *screen,
                         ExploreRequest *request)
{
    DeviceInfo info;
    Workplace place;
    // Without a device named, features are those of a GPU of the table.
    if (!o->device_given && !o->device_model)
        o->device_model = "nvidia-h200";
    bool model_only = !o->device_given || o->written;
    if (!cli_place(o, problem, &place) || !cli_device(o, &info))
        return false;
    *request = (ExploreRequest){.expressions = o->number ? (int)o->number : 1000,
                                .threads = o->threads ? (int)o->threads : 10,
                                .derived = o->derived,
                                .written = o->written,
                                .info = info,
                                .seed = o->seed,
                                .most_group = MIN(info.max_group, 1024),
                                .local_bytes = info.local_bytes,
                                .device = model_only ? NULL : o->device,
                                .sample = o->sample,
                                .unchecked = o->unchecked,
                                .place = place,
                                .progress = show,
                                .user = screen};
    if (!o->device_model || !device_model_find(o->device_model, &request->model))
        describe_device(&info, &request->model);
    request->command = command_text(o, request);
    return !o->model || load_predictor(o, &info, request);
}

static void print_result(const Problem *problem, const ExploreResult *r)
{
    AutoBuf counts = buf_new();
    trial_counts(&counts, r->count);
    printf("%s: %d distinct expressions, %lld points in %.1f s", problem_label(problem),
           r->expressions, (long long)r->rows, r->generation_s);
    if (r->measured)
        printf("; %lld measured (compiling %.1f s, running %.1f s):",
               (long long)r->measured, r->compilation_s, r->execution_s);
    printf("%s\n", counts.text);
}

int cmd_explore(Options *o)
{
    Screen screen = screen_open(o);
    ExploreRequest request;
    ExploreResult result;
    Problem *problem = cli_program(o, SIZES_ALL);
    if (!problem || !make_request(o, problem, &screen, &request))
        return 2;
    if (o->again && !(request.again = dataset_read(o->again, o->arena, &o->diags)))
        return 1;
    AutoBuf csv = buf_new();
    bool ok = explore(problem, &request, &csv, &result, &o->diags);
    screen_close(&screen);
    if (ok) {
        if (cli_prints(o))
            print_result(problem, &result);
        ok = !o->csv || cli_write(o, o->csv, &csv);
    }
    if (request.by)
        predictor_free(request.by);
    return ok ? 0 : 1;
}
