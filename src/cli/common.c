// SPDX-License-Identifier: Apache-2.0
//
// What several commands share: problems, places, points, JSON.

#include "cli/cli.h"

#include "calibrate/describe.h"
#include "problem/template.h"
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char cli_default_device[] = "opencl:0";

// Where no device was asked for, a template runs on one that takes its language.
static void choose_device(Options *o, const Problem *problem)
{
    const DeviceKind *kind =
        problem->template ? device_kind_of(problem->template->language) : NULL;
    if (kind && o->device == cli_default_device)
        o->device = arena_printf(o->arena, "%s:0", kind->name);
}

// What the command says of the goal: its objectives take the place of the file's.
static void set_goal(const Options *o, Problem *problem)
{
    for (int i = 0; i < o->goal.metric.len; i++)
        VEC_PUSH(problem->arena, &problem->goal.metric, o->goal.metric.at[i]);
    if (o->goal.objective.len)
        problem->goal.objective.len = 0;
    for (int i = 0; i < o->goal.objective.len; i++)
        VEC_PUSH(problem->arena, &problem->goal.objective, o->goal.objective.at[i]);
}

const char *cli_objective(const Options *o)
{
    return o->goal.objective.len ? o->goal.objective.at[0].text : NULL;
}

Problem *cli_problem(Options *o, CliSizes sizes)
{
    Problem *problem = o->problem = problem_load(o->file, &o->diags);
    if (!problem->kind)
        return NULL;
    choose_device(o, problem);
    set_goal(o, problem);
    if (o->unchecked && problem->template)
        template_uncheck(problem->template);
    if (problem->program) {
        problem->program->math = o->math;
        problem->program->extra = o->extra;
    } else if (o->math != MATH_STANDARD) {
        return diag_null(&o->diags, span_none, "C035",
                         "--math is for programs; a template sets this in \"options\"");
    }
    if (o->unchecked && !problem->template && strcmp(o->command->name, "explore") != 0)
        return diag_null(
            &o->diags, span_none, "C036",
            "--unchecked is for problem files; forewarp knows what a program must compute");
    bool bound = sizes == SIZES_LATER ||
                 (sizes == SIZES_OPEN
                      ? problem_bind_open(problem, o->binding, o->nbinding, &o->diags)
                      : problem_bind(problem, o->binding, o->nbinding, &o->diags));
    return bound ? problem : NULL;
}

Problem *cli_program(Options *o, CliSizes sizes)
{
    Problem *problem = cli_problem(o, sizes);
    if (!problem || problem->program)
        return problem;
    return diag_null(&o->diags, span_none, "C032",
                     "forewarp %s is for programs; %s is a %s", o->command->name, o->file,
                     problem->kind->name);
}

// One item of a list of devices; "cuda:*" is all of a kind.
static bool add_devices(Options *o, const char *item, const char **device, int *n)
{
    size_t len = strlen(item);
    DeviceInfo *all;
    int before = *n;
    if (len > 2 && strcmp(item + len - 2, ":*") == 0) {
        int found = devices_list(o->arena, NULL, cli_stop(), &all, &o->diags);
        for (int i = 0; i < found && *n < CLI_LIST_MAX; i++)
            if (strncmp(all[i].id, item, len - 1) == 0)
                device[(*n)++] = all[i].id;
        DeviceInfo first; // if there is none, the reason is that of its first
        return *n > before ||
               (devices_find(o->arena, NULL, cli_stop(),
                             arena_printf(o->arena, "%.*s0", (int)len - 1, item), &first,
                             &o->diags) &&
                false);
    }
    if (!device_check(item, &o->diags))
        return false;
    if (*n < CLI_LIST_MAX)
        device[(*n)++] = item;
    return true;
}

int cli_devices(Options *o, const char *list, const char ***device)
{
    char *save = NULL, *text = arena_strdup(o->arena, list);
    int n = 0;
    *device = NEW_ARRAY(o->arena, const char *, CLI_LIST_MAX);
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save))
        if (!add_devices(o, item, *device, &n))
            return 0;
    if (n == 0)
        diag_error(&o->diags, span_none, "C006", "-d names no device");
    return n;
}

Workplace cli_workplace(Options *o)
{
    return (Workplace){.folder = workplace_folder(o->arena), .stop = cli_stop()};
}

bool cli_place(Options *o, const Problem *problem, Workplace *place)
{
    *place = cli_workplace(o);
    if (!o->sandbox)
        return true;
    Sandbox *sandbox = NEW(o->arena, Sandbox);
    place->sandbox = sandbox;
    return sandbox_describe(problem_bytes(problem), sandbox, o->arena, &o->diags);
}

const char *cli_store(Options *o)
{
    if (o->store)
        return o->store;
    Buf path = buf_new();
    store_default_path(&path);
    return buf_keep(&path, o->arena);
}

const char *cli_share(Options *o, const char *name, const char *beside)
{
    return file_shared("/proc/self/exe", name, beside, o->arena);
}

const char *cli_models_folder(Options *o)
{
    return cli_share(o, "models", "../data/models");
}

bool cli_prints(const Options *o)
{
    return !(o->json && strcmp(o->json, "-") == 0) && !(o->csv && strcmp(o->csv, "-") == 0);
}

json_t *cli_set_json(Calls calls)
{
    json_t *list = json_array();
    for (Set s = calls.set; s; s &= s - 1)
        json_array_append_new(list, json_integer(calls.first + __builtin_ctzll(s) + 1));
    return list;
}

// ASCII without control characters, so that a terminal shows it as it is.
static void put_json(Buf *out, const json_t *json, size_t digits)
{
    char *text =
        json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(digits) | JSON_ENSURE_ASCII);
    for (const char *c = text; *c; c++)
        if (*c == 0x7f)
            buf_puts(out, "\\u007f");
        else
            buf_putc(out, *c);
    buf_putc(out, '\n');
    free(text);
}

bool cli_write(Options *o, const char *path, const Buf *text)
{
    if (!path || strcmp(path, "-") == 0)
        return cli_put(o, text);
    return file_pack(path, text->text, text->len) ||
           diag_world(&o->diags, "C003", "cannot write %s: %s", path, strerror(errno));
}

static bool write_json(Options *o, json_t *json, size_t digits)
{
    AutoBuf text = buf_new();
    if (o->json)
        put_json(&text, json, digits);
    bool ok = !o->json || cli_write(o, o->json, &text);
    json_decref(json);
    return ok;
}

bool cli_json(Options *o, json_t *json)
{
    return write_json(o, json, 12);
}

bool cli_json_exact(Options *o, json_t *json)
{
    return write_json(o, json, 17);
}

bool cli_result(Options *o, json_t *json)
{
    AutoBuf text = buf_new();
    if (cli_prints(o))
        report_result(&text, json);
    bool ok = cli_put(o, &text);
    return cli_json(o, json) && ok;
}

bool cli_unknown(Options *o, const char *code, const char *what, const char *name,
                 const char *const *known, int n)
{
    AutoBuf text = buf_new();
    guess_print_known(&text, name, known, n);
    return diag_error(&o->diags, span_none, code, "there is no %s `%s`%s", what, name,
                      text.text);
}

enum { VALUES_SHOWN = 20 };

static bool no_assignment(Options *o, const Space *space, const char *item)
{
    AutoBuf known = buf_new();
    for (int i = 0; i < space_params(space); i++)
        buf_printf(&known, "%s%s", i ? ", " : "", space_param(space, i)->name);
    return diag_error(&o->diags, span_none, "C004",
                      "--point takes NAME=VALUE, not `%s`; the parameters of this program: "
                      "%s (`forewarp help -p NAME` explains one)",
                      item, known.text);
}

static bool no_value(Options *o, const Space *space, int param, const char *value)
{
    int n = space_param(space, param)->n;
    AutoBuf known = buf_new();
    for (int i = 0; i < MIN(n, VALUES_SHOWN); i++) {
        buf_puts(&known, i ? ", " : "");
        space_value_print(&known, space, param, i);
    }
    if (n > VALUES_SHOWN)
        buf_printf(&known, ", ... (%d in all)", n);
    return diag_error(&o->diags, span_none, "C004", "%s cannot be `%s`; it can be %s",
                      space_param(space, param)->name, value, known.text);
}

// Sets what `name=value ...` names in a point that starts plain.
static bool set_point(Options *o, const Variants *variants, Point *point)
{
    const Space *space = variants->space;
    char *text = arena_strdup(o->arena, o->point), *save = NULL;
    uint64_t named = 0;
    for (char *item = strtok_r(text, " ,", &save); item;
         item = strtok_r(NULL, " ,", &save)) {
        char *eq = strchr(item, '=');
        if (!eq)
            return no_assignment(o, space, item);
        *eq = 0;
        int param = space_find(space, item);
        if (param < 0)
            return space_no_parameter(space, span_none, "C004", item, &o->diags);
        if (named & (uint64_t)1 << param)
            return diag_error(&o->diags, span_none, "C004", "%s is given twice", item);
        named |= (uint64_t)1 << param;
        if (!space_set(space, point, item, eq + 1))
            return no_value(o, space, param, eq + 1);
    }
    return space_valid(space, point) ||
           diag_error(&o->diags, span_none, "C004", "the point breaks the constraint `%s`",
                      space_broken(space, point));
}

// The plan of this very problem may be another device's, which -d forgot to name.
static void say_elsewhere(Options *o, const PlanFound *found, const Problem *problem)
{
    DeviceInfo *info;
    Diags quiet = {.arena = o->arena};
    int n = found->elsewhere ? devices_list(o->arena, NULL, cli_stop(), &info, &quiet) : 0;
    for (int i = 0; i < n; i++)
        if (strcmp(info[i].fingerprint, found->elsewhere) == 0)
            diag_warning(
                &o->diags, span_none, "C101",
                "a plan for %s is stored for another device: for that one add -d %s",
                problem_label(problem), info[i].id);
}

// Commands that hand out no kernel take the plan as it is.
static bool best_point(Options *o, const Variants *variants, const DeviceInfo *device,
                       Point *point, const char **rule)
{
    PlanFound found;
    Workplace place;
    if (!cli_place(o, variants->problem, &place))
        return false;
    bool hands_out = o->command == &commands[CMD_RUN] || o->command == &commands[CMD_EMIT];
    const PlanAsked asked = {.store = cli_store(o),
                             .device = device,
                             .reach = REACH_SIZES | (o->any_device ? REACH_DEVICES : 0),
                             .place = hands_out ? &place : NULL,
                             .seed = o->seed};
    int got = plan_find(variants, &asked, o->arena, &found, &o->diags);
    if (got == 0 || (got > 0 && found.other_size))
        say_elsewhere(o, &found, variants->problem);
    if (got == 0)
        diag_world(&o->diags, "C005",
                   "nothing is stored for %s on this device; tune it first",
                   problem_label(variants->problem));
    if (got <= 0)
        return false;
    plan_warn(&found, variants, device, &o->diags);
    if (hands_out && !found.checked)
        diag_warning(&o->diags, span_none, "C089",
                     "the plan was not checked: no kernel for target %s runs on %s",
                     target_name(variants->target), device->name);
    *point = found.point;
    *rule = found.rule;
    return true;
}

bool cli_rule(Options *o, const Variants *variants, const DeviceInfo *device, Point *point,
              const char **rule)
{
    *rule = NULL;
    if (o->point)
        variants_simplest(variants, point);
    else
        variants_first(variants, point, 1);
    if (o->best && !best_point(o, variants, device, point, rule))
        return false;
    if (o->point)
        *rule = NULL; // parts of it are the user's
    return !o->point || set_point(o, variants, point);
}

bool cli_point(Options *o, const Variants *variants, const DeviceInfo *device, Point *point)
{
    const char *rule;
    return cli_rule(o, variants, device, point, &rule);
}

static bool no_model(Options *o)
{
    int n;
    const char *const *name = device_model_ids(&n);
    return cli_unknown(o, "C030", "device model", o->device_model, name, n);
}

bool cli_device(Options *o, DeviceInfo *info)
{
    if (o->device_model) {
        DeviceModel model;
        if (!device_model_find(o->device_model, &model))
            return no_model(o);
        describe_model(&model, info);
        return true;
    }
    return devices_find(o->arena, NULL, cli_stop(), o->device, info, &o->diags);
}

static bool no_target(Options *o, const char *target)
{
    const char *name[8];
    int n = 0;
    for (; n < COUNTOF(name) && target_at(n); n++)
        name[n] = target_name(target_at(n));
    return cli_unknown(o, "C008", "target", target, name, n);
}

const Target *cli_target(Options *o, const DeviceInfo *device)
{
    const char *name = o->target ? o->target : device->target;
    const Target *target = target_find(name);
    if (!target)
        no_target(o, name);
    return target;
}

bool cli_steps(Options *o, const Steps **steps)
{
    if (!path_ends(o->strategy, ".fwh"))
        return true;
    const char *why;
    const Source *source = source_read(o->strategy, o->arena, &why);
    if (!source)
        return diag_error(&o->diags, span_none, "C043", "cannot read %s: %s", o->strategy,
                          why);
    *steps = steps_parse(source, o->arena, &o->diags);
    o->strategy = "heuristic";
    return *steps;
}

bool cli_no_strategy(Options *o, const char *strategy)
{
    int n;
    const SearchKind *const *kind = search_all(&n);
    const char **name = NEW_ARRAY(o->arena, const char *, n);
    for (int i = 0; i < n; i++)
        name[i] = kind[i]->name;
    return cli_unknown(o, "C010", "strategy", strategy, name, n);
}

// What else can stand for a model: weights of counts; and what eval alone takes.
static const char *const besides[] = {"linear", "loading"};

const char **cli_model_names(const Command *command, Arena *arena, int *n)
{
    const ModelKind *const *all = model_all(n);
    const char **name = NEW_ARRAY(arena, const char *, *n + COUNTOF(besides));
    for (int i = 0; i < *n; i++)
        name[i] = all[i]->name;
    for (int i = 0; i < COUNTOF(besides); i++)
        if (command == &commands[CMD_EVAL] || i == 0)
            name[(*n)++] = besides[i];
    return name;
}

const ModelKind *cli_model_kind(Options *o)
{
    const ModelKind *kind = model_find(o->file);
    if (kind)
        return kind;
    int n;
    const char **name = cli_model_names(o->command, o->arena, &n);
    cli_unknown(o, "C015", "model", o->file, name, n);
    return NULL;
}

ColumnSet cli_columns(const Options *o, const ModelKind *kind)
{
    for (int i = 0; i < COLUMN_SETS; i++)
        if (o->features && strcmp(o->features, column_set_name[i]) == 0)
            return (ColumnSet)i;
    return kind->columns;
}

bool cli_colour(const Options *o, int file)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    if (o->colour != COLOUR_AUTO)
        return o->colour == COLOUR_ALWAYS;
    return isatty(file) && !(none && *none) && !(term && strcmp(term, "dumb") == 0);
}

void cli_time(Buf *out, double ns)
{
    put_duration(out, ns, "u");
}

void cli_print_roofline(const Limit *limit)
{
    const Roofline *roofline = &limit->roofline;
    if (roofline->ns <= 0)
        return;
    Buf time[3];
    const double ns[] = {roofline->ns, roofline->memory_ns, roofline->compute_ns};
    for (int i = 0; i < 3; i++) {
        time[i] = buf_new();
        cli_time(&time[i], ns[i]);
    }
    bool large = limit->bytes >= 1e9;
    const char *before = "  (", *after = "";
    printf("  roofline %12s", time[0].text);
    if (roofline->memory_ns > 0) { // a copy of that size was measured
        printf("%s%.3g %s copied: %s", before, limit->bytes * (large ? 1e-9 : 1e-6),
               large ? "GB" : "MB", time[1].text);
        before = "; ", after = ")";
    }
    if (limit->flops > 0) { // a template's arithmetic is not known
        printf("%s%.3g Gflop: %s", before, limit->flops * 1e-9, time[2].text);
        after = ")";
    }
    puts(after);
    for (int i = 0; i < 3; i++)
        buf_release(&time[i]);
}

json_t *cli_roofline_json(const Limit *limit, double ns)
{
    const Roofline *roofline = &limit->roofline;
    if (roofline->ns <= 0)
        return json_null();
    return json_pack("{s:f, s:s, s:f, s:f, s:f, s:f, s:f}", "ns", roofline->ns, "bound",
                     roofline->memory_ns >= roofline->compute_ns ? "memory" : "flops",
                     "memory_ns", roofline->memory_ns, "compute_ns", roofline->compute_ns,
                     "bytes", limit->bytes, "flops", limit->flops, "share",
                     roofline->ns / ns);
}

bool cli_inputs(Options *o, const Problem *problem, InputFiles *files)
{
    int n, known = 0;
    const Argument *argument = problem->kind->arguments(problem, o->arena, &n);
    const char **input = NEW_ARRAY(o->arena, const char *, MAX(n, 1));
    *files = (InputFiles){o->in_name, o->in_file, o->nin};
    for (int i = 0; i < n; i++)
        if (argument[i].in)
            input[known++] = argument[i].name;
    for (int i = 0; i < o->nin; i++) {
        const char *name = o->in_name[i];
        if (FIND_TEXT(input, known, name) < 0)
            return cli_unknown(o, "C020", "input", name, input, known);
        if (FIND_TEXT(o->in_name, i, name) >= 0)
            return diag_error(&o->diags, span_none, "C020", "input `%s` is given twice",
                              name);
    }
    return true;
}
