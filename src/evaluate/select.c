// SPDX-License-Identifier: Apache-2.0
//
// Picks among measured points; see select.h.

#include "evaluate/select.h"

#include "calibrate/describe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The program of a group ----------------------------------------------------------------

// `forewarp explore PATH -s N=1,M=2 ...`: its path and sizes, cut out of a copy.
static int read_command(char *text, const char **path, Binding *binding, int max)
{
    int n = 0;
    char *save = NULL, *sizes = NULL, *last = NULL;
    *path = NULL;
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (last && strcmp(last, "explore") == 0)
            *path = word;
        if (last && strcmp(last, "-s") == 0)
            sizes = word;
        last = word;
    }
    for (char *item = sizes ? strtok_r(sizes, ",", &save) : NULL; item && n < max;
         item = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(item, '=');
        if (!eq)
            continue;
        *eq = 0;
        binding[n++] = (Binding){item, atoll(eq + 1)};
    }
    return n;
}

// Sizes that are all the same are one number in the data.
static bool is_size(const Binding *binding, int n, const char *size)
{
    char *end;
    long long value = strtoll(size, &end, 10);
    bool same = n > 0;
    for (int i = 0; i < n; i++, end += *end == 'x') {
        same = same && binding[i].value == value;
        value = *end == 'x' ? strtoll(end + 1, &end, 10) : value;
    }
    return same;
}

// Bound; NULL with a diagnostic if no command has it, or its file is not there.
static Problem *find_problem(const Dataset *data, const DatasetGroup *group, Arena *arena,
                             Diags *diags)
{
    const char *program = data->program_name[group->program];
    for (int i = 0; i < data->meta.len; i++) {
        const char *path;
        Binding *binding = NEW_ARRAY(arena, Binding, 16);
        if (strcmp(data->meta.at[i].key, "command") != 0)
            continue;
        char *text = arena_strdup(arena, data->meta.at[i].value);
        int n = read_command(text, &path, binding, 16);
        if (!path || !strstr(path, program) ||
            !is_size(binding, n, data->size_name[group->size]))
            continue;
        Problem *problem = problem_load(path, diags);
        if (problem->program && strcmp(problem->name, program) == 0 &&
            problem_bind(problem, binding, n, diags))
            return problem;
        problem_free(problem);
    }
    diag_error(diags, span_none, "M006", "no command in the data has the program %s at %s",
               program, data->size_name[group->size]);
    return NULL;
}

// Picking ---------------------------------------------------------------------------------

typedef struct {
    double predicted, measured;
    int row;
} Place;

bool select_predict(const Problem *problem, const Derivation *derivation, const Weights *w,
                    const Point *point, double *seconds)
{
    DeviceModel model;
    Arena *scratch = arena_new();
    Diags quiet;
    diags_init(&quiet, scratch);
    IrMark mark = ir_mark(problem->ir);
    describe_device(&w->device, &model);
    FeatureSetting setting = {&model, problem->binding, problem->nbinding};
    Unit *unit = derive_unit(derivation, point, true, scratch, &quiet);
    bool ok = unit && predict_unit(w, unit, &setting, scratch, seconds);
    arena_free(scratch);
    ir_release(problem->ir, mark);
    return ok;
}

static int compare_places(const void *a, const void *b)
{
    const Place *p = a, *q = b;
    if (p->predicted != q->predicted)
        return p->predicted < q->predicted ? -1 : 1;
    return p->row - q->row;
}

static void fill_pick(Pick *pick, Place *place)
{
    int n = pick->points;
    double *a = xcalloc((size_t)n + 1, sizeof *a), *b = xcalloc((size_t)n + 1, sizeof *b);
    double best = INFINITY;
    pick->best_ns = INFINITY;
    for (int i = 0; i < n; i++) {
        a[i] = place[i].predicted;
        b[i] = place[i].measured;
        pick->best_ns = fmin(pick->best_ns, b[i]);
    }
    pick->spearman = metric_spearman(a, b, n);
    qsort(place, (size_t)n, sizeof *place, compare_places);
    pick->first_ns = place[0].predicted;
    for (int i = 0; i < PICK_TEN; i++) {
        best = i < n ? fmin(best, place[i].measured) : best;
        pick->within[i] = best / pick->best_ns;
    }
    free(a);
    free(b);
}

static bool pick_group(const Dataset *data, const DatasetGroup *group, const Weights *w,
                       Arena *arena, Pick *pick, Diags *diags)
{
    *pick = (Pick){.program = data->program_name[group->program],
                   .size = data->size_name[group->size]};
    Problem *problem = find_problem(data, group, arena, diags);
    Derivation *derivation = problem ? derive_new(problem->bound, &w->device, diags) : NULL;
    Place *place = NEW_ARRAY(arena, Place, group->n + 1);
    double start = clock_s();
    for (int i = 0; derivation && i < group->n; i++) {
        int row = group->row[i];
        double seconds;
        Point point;
        if (!isfinite(data->time_ns[row]))
            continue;
        const Space *space = derive_space(derivation);
        if (point_parse(space, data->expression[row], &point) &&
            space_valid(space, &point) &&
            select_predict(problem, derivation, w, &point, &seconds))
            place[pick->points++] = (Place){seconds * 1e9, data->time_ns[row], row};
        else
            pick->unknown++;
    }
    pick->seconds = clock_s() - start;
    bool ok = pick->points > 0;
    if (ok)
        fill_pick(pick, place);
    else if (derivation)
        diag_error(diags, span_none, "M006",
                   "the data have no points of %s that this "
                   "version derives",
                   pick->program);
    derive_free(derivation);
    problem_free(problem);
    return ok;
}

bool select_points(const Dataset *data, const Weights *w, Arena *arena, Pick **pick,
                   Diags *diags)
{
    *pick = NEW_ARRAY(arena, Pick, data->ngroup + 1);
    for (int g = 0; g < data->ngroup; g++)
        if (!pick_group(data, &data->group_at[g], w, arena, &(*pick)[g], diags))
            return false;
    return true;
}
