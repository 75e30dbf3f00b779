// SPDX-License-Identifier: Apache-2.0
//
// Studies: see study.h. The spaces that strategies search are parts of the recorded one, of
// the same parameters and values, so a point is the same point in all of them.
#include "evaluate/study.h"

#include "model/dataset.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const loading_name[LOAD_WAYS] = {"global", "vector", "local", "image", "any"};
const char *const studied_file[STUDIED] = {
#define X(id, file, part, text) file,
    STUDY_STEPS(X)
#undef X
};
const char *const studied_text[STUDIED] = {
#define X(id, file, part, text) text,
    STUDY_STEPS(X)
#undef X
};
static const char *const studied_part[STUDIED] = {
#define X(id, file, part, text) part,
    STUDY_STEPS(X)
#undef X
};

// The index ---------------------------------------------------------------------------

enum { COLUMNS = 10 };
static const char header[] =
    "file,sample,parts,kernel,points,dims,density,unique,adds,muls";

static bool wrong(Diags *diags, const char *file, int line, const char *what)
{
    return diag_error(diags, span_none, "X010", "%s:%d: %s", file, line, what);
}

static int unique_of(const char *word)
{
    static const char *const known[] = {"none", "x", "y", "z"};
    for (int i = 0; i < COUNTOF(known); i++)
        if (strcmp(word, known[i]) == 0)
            return i;
    return -1;
}

static bool read_row(Arena *arena, const char *file, int number, char *line,
                     StudyStencil *s, Diags *diags)
{
    char *cell[COLUMNS], *save = NULL;
    int n = 0;
    for (char *at = strtok_r(line, ",", &save); at && n < COLUMNS;
         at = strtok_r(NULL, ",", &save))
        cell[n++] = at;
    if (n < COLUMNS)
        return wrong(diags, file, number, "ten columns are wanted");
    *s = (StudyStencil){.file = arena_strdup(arena, cell[0]),
                        .nrand = atoi(cell[1]),
                        .parts = arena_strdup(arena, cell[2]),
                        .kernel = arena_strdup(arena, cell[3]),
                        .points = atof(cell[4]),
                        .dims = atoi(cell[5]),
                        .density = atof(cell[6]),
                        .unique = unique_of(cell[7]),
                        .adds = atoi(cell[8]),
                        .muls = atoi(cell[9])};
    if (s->nrand < 1 || s->points < 0 || s->dims < 1 || s->density <= 0 || s->unique < 0 ||
        s->adds < 1 || s->muls < 1)
        return wrong(diags, file, number, "a value is not what its column wants");
    return true;
}

static bool read_index(Study *study, const char *path, Diags *diags)
{
    Buf text;
    buf_init(&text);
    if (!file_read(path, FILE_TEXT_MOST, &text)) {
        diag_world(diags, "X011", "cannot read %s: %s", path, text.text);
        buf_release(&text);
        return false;
    }
    int number = 0;
    bool ok = true;
    char *save = NULL;
    VEC(StudyStencil) rows = {0};
    for (char *line = strtok_r(text.text, "\n", &save); ok && line;
         line = strtok_r(NULL, "\n", &save)) {
        StudyStencil made;
        if (++number == 1)
            ok = strcmp(line, header) == 0 ||
                 wrong(diags, path, 1, "the first line must name the columns");
        else if ((ok = read_row(study->arena, path, number, line, &made, diags)))
            VEC_PUSH(study->arena, &rows, made);
    }
    study->stencil = rows.at;
    study->n = rows.len;
    buf_release(&text);
    return ok && (study->n > 0 || wrong(diags, path, number, "there are no stencils"));
}

bool study_has(const StudyStencil *s, const char *part)
{
    size_t n = strlen(part);
    for (const char *at = s->parts; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL)
        if (strncmp(at, part, n) == 0 && (at[n] == 0 || at[n] == '+'))
            return true;
    return false;
}

// Parts of a space ----------------------------------------------------------------------

static double value_or(const Space *space, const Point *point, const char *name,
                       double otherwise)
{
    int p = space_find(space, name);
    return p < 0 ? otherwise : space_value(space, point, p);
}

static bool is_word(const Space *space, const Point *point, const char *name,
                    const char *word)
{
    int p = space_find(space, name);
    return p >= 0 && space_param(space, p)->label &&
           strcmp(space_word(space, point, name), word) == 0;
}

Loading study_loading(const Space *space, const Point *point)
{
    if (is_word(space, point, "scheme", "tiled") ||
        is_word(space, point, "scheme", "padded"))
        return LOAD_LOCAL;
    if (is_word(space, point, "scheme", "image"))
        return LOAD_IMAGE;
    return value_or(space, point, "vec", 1) > 1 ? LOAD_VECTOR : LOAD_GLOBAL;
}

// The space of section 4.7: outputs are merged in x only, as far as a vector covers them,
// and vectors are of global memory.
static bool is_papers(const Space *space, const Point *point)
{
    double vec = value_or(space, point, "vec", 1);
    return value_or(space, point, "by", 1) == 1 && value_or(space, point, "bz", 1) == 1 &&
           value_or(space, point, "walk", 1) == 1 &&
           value_or(space, point, "bx", 1) == vec &&
           (vec == 1 || study_loading(space, point) == LOAD_VECTOR) &&
           !is_word(space, point, "border", "split");
}

// Kernels of other kinds than the paper's: for a work-group of any shape, and with all
// loads.
static bool any_group(const Space *space, const Point *point)
{
    return is_word(space, point, "group", "any");
}

static bool all_loads(const Space *space, const Point *point)
{
    return is_word(space, point, "loads", "all");
}

static bool is_plain(const Space *space, const Point *point)
{
    return is_papers(space, point) && !any_group(space, point) && !all_loads(space, point);
}

bool study_is_stencil(const StudyStencil *s)
{
    return s->points > 0;
}

// A program that is no stencil has one part, all that was recorded.
static bool in_part(const StudyStencil *s, int loading, bool any, const Point *point)
{
    const Space *all = s->record->space;
    if (!study_is_stencil(s))
        return loading == LOAD_ANY;
    return is_papers(all, point) && !all_loads(all, point) &&
           (any || !any_group(all, point)) &&
           (loading == LOAD_ANY || (int)study_loading(all, point) == loading);
}

static bool make_part(StudyStencil *s, int loading, bool any, Space **part, Diags *diags)
{
    const Space *all = s->record->space;
    Point *point = xcalloc((size_t)s->record->n, sizeof *point);
    int n = 0;
    for (int i = 0; i < s->record->n; i++) {
        space_point(all, (uint64_t)i, &point[n]);
        n += in_part(s, loading, any, &point[n]);
    }
    bool ok = true;
    if (n > 0) {
        *part = space_like(all);
        space_only(*part, point, n);
        ok = space_build(*part, diags);
    }
    free(point);
    return ok;
}

// What was run -------------------------------------------------------------------------

static double time_of(const StudyStencil *s, int number)
{
    double value = s->record->at[number].value;
    return isnan(value) ? INFINITY : value * 1e6; // of milliseconds
}

// built: that very kernel was, for another work-group.
static void add_config(const StudyStencil *s, int number, bool built, Found *found)
{
    const RecordedPoint *at = &s->record->at[number];
    double ns = time_of(s, number), build_s = built ? 0 : at->build_s;
    found->configs++;
    found->kernels += !built;
    found->build_s += build_s;
    found->run_s += at->run_s;
    found->cost_s += build_s + at->run_s;
    if (ns < found->ns) {
        found->ns = ns;
        found->best = number;
    }
}

// The first point of a record is the plain one; Rand begins with the second.
static void take_rand(Study *study, StudyStencil *s)
{
    int want = s->nrand;
    s->rand = NEW_ARRAY(study->arena, int, want);
    s->random = (Found){.done = true, .ns = INFINITY, .best = -1};
    int *by_order = xcalloc((size_t)s->record->n + 1, sizeof *by_order);
    memset(by_order, 0xff, (size_t)(s->record->n + 1) * sizeof *by_order);
    for (int i = 0; i < s->record->n; i++)
        if (s->record->at[i].order <= s->record->n)
            by_order[s->record->at[i].order] = i;
    s->nrand = 0;
    for (int i = 1; i <= want && i < s->record->n; i++)
        if (by_order[i] >= 0)
            s->rand[s->nrand++] = by_order[i];
    s->plain = by_order[0];
    for (int i = 0; i < s->nrand; i++)
        add_config(s, s->rand[i], false, &s->random);
    free(by_order);
}

// A number a line, empty where there is none: as many as there are points, and no more.
static bool parse_predicted(char *at, int n, double *ns)
{
    for (int i = 0; i < n; i++) {
        char *end = at;
        ns[i] = *at == '\n' ? NAN : strtod(at, &end);
        if (*end != '\n' || !(isnan(ns[i]) || ns[i] > 0))
            return false;
        at = end + 1;
    }
    return !*at;
}

static bool read_predicted(Study *study, StudyStencil *s, const char *folder, Diags *diags)
{
    const char *stem = arena_strndup(study->arena, s->file, strcspn(s->file, "."));
    const char *path = arena_printf(study->arena, "%s/%s.predicted.gz", folder, stem);
    if (access(path, F_OK) != 0)
        return true;
    Buf text;
    buf_init(&text);
    s->predicted_ns = NEW_ARRAY(study->arena, double, s->record->n);
    bool ok = dataset_text(path, &text, diags) &&
              (parse_predicted(text.text, s->record->n, s->predicted_ns) ||
               diag_error(diags, span_none, "X010",
                          "%s: it wants a line for each of %d points, with a time in "
                          "nanoseconds or nothing",
                          path, s->record->n));
    buf_release(&text);
    return ok;
}

static bool open_stencil(Study *study, StudyStencil *s, const char *folder, Diags *diags)
{
    s->record = recorded_read(arena_printf(study->arena, "%s/%s", folder, s->file), diags);
    if (!s->record)
        return false;
    if (study_is_stencil(s) && s->record->nsize < 3)
        return diag_error(diags, span_none, "X012", "%s does not say three sizes", s->file);
    for (int d = 0; d < 3; d++)
        s->size[d] = d < s->record->nsize ? (int64_t)s->record->size[d] : 1;
    for (int l = 0; l < LOAD_WAYS; l++)
        if (!make_part(s, l, false, &s->part[l], diags) ||
            !make_part(s, l, true, &s->part_any[l], diags))
            return false;
    take_rand(study, s);
    if (!read_predicted(study, s, folder, diags))
        return false;
    return isfinite(s->random.ns) ||
           diag_error(diags, span_none, "X012", "%s: nothing of Rand ran", s->file);
}

// Following heuristics ------------------------------------------------------------------

// One kernel for work-groups of any shape, but for the shape the same.
static bool is_built(const Space *space, const Point *tried, int n, const Point *point)
{
    bool built = false;
    for (int i = 0; i < n && !built && any_group(space, point); i++) {
        Point same = tried[i];
        static const char *const shape[] = {"lx", "ly", "lz"};
        for (int d = 0; d < COUNTOF(shape); d++) {
            int p = space_find(space, shape[d]);
            if (p >= 0)
                same.choice[p] = point->choice[p];
        }
        built = memcmp(&same, point, sizeof same) == 0;
    }
    return built;
}

static Found follow(const StudyStencil *s, const Steps *steps, Space *part)
{
    static const char *const name[] = {"Z", "Y", "X"};
    StepsSize size[3];
    for (int d = 0; d < 3; d++)
        size[d] = (StepsSize){name[d], (double)s->size[d]};
    Found found = {.done = true, .ns = INFINITY, .best = -1};
    Search *search = search_open(search_find("heuristic"), part, 1, INFINITY);
    search->steps = steps;
    search->size = size;
    search->nsize = 3;
    Point *tried = xcalloc((size_t)s->record->n + 1, sizeof *tried);
    for (Point point; search_ask(search, &point);) {
        int number = (int)space_number(s->record->space, &point), n = found.configs;
        add_config(s, number, is_built(s->record->space, tried, n, &point), &found);
        tried[n] = point;
        search_tell(search, &point, time_of(s, number));
    }
    search_close(search);
    free(tried);
    return found;
}

static const Steps *read_steps(Study *study, const char *folder, const char *file,
                               Diags *diags)
{
    const char *path = arena_printf(study->arena, "%s/%s.fwh", folder, file);
    const char *why;
    const Source *source = source_read(path, study->arena, &why);
    if (source)
        return steps_parse(source, study->arena, diags);
    diag_world(diags, "X011", "cannot read %s: %s", path, why);
    return NULL;
}

// Is the heuristic not followed with a loading that others are: a part says so.
static bool left_out(const StudyStencil *s, int loading)
{
    char part[32];
    snprintf(part, sizeof part, "without_%s", loading_name[loading]);
    return study_has(s, part);
}

static bool follow_all(Study *study, const char *folder, Diags *diags)
{
    for (int h = 0; h < STUDIED; h++) {
        const Steps *steps = study->steps[h] =
            read_steps(study, folder, studied_file[h], diags);
        for (int i = 0; steps && i < study->n; i++) {
            StudyStencil *s = &study->stencil[i];
            bool any = h == STEPS_EXPERT || !study_is_stencil(s);
            int first = any ? LOAD_ANY : 0, last = any ? LOAD_ANY : LOADS - 1;
            for (int l = first; l <= last && study_has(s, studied_part[h]); l++) {
                Space *part = h == STEPS_VARIABLE ? s->part_any[l] : s->part[l];
                // A tile has the shape of its group.
                if (part && !left_out(s, l) && (h != STEPS_VARIABLE || l != LOAD_LOCAL))
                    s->found[h][l] = follow(s, steps, part);
            }
        }
        if (!steps)
            return false;
    }
    return true;
}

static void find_oracles(StudyStencil *s)
{
    for (int h = 0; h < STUDIED; h++) {
        s->oracle[h] = s->predicted[h] = -1;
        if (!study_is_stencil(s) && s->found[h][LOAD_ANY].done)
            s->oracle[h] = s->predicted[h] = LOAD_ANY;
        for (int l = 0; l < LOADS; l++) {
            const Found *f = &s->found[h][l];
            if (f->done && isfinite(f->ns) &&
                (s->oracle[h] < 0 || f->ns < s->found[h][s->oracle[h]].ns))
                s->oracle[h] = l;
        }
    }
}

Found study_oracle(const StudyStencil *s, Studied h)
{
    if (s->oracle[h] == LOAD_ANY)
        return s->found[h][LOAD_ANY];
    Found all = {.ns = INFINITY, .best = -1};
    for (int l = 0; l < LOADS; l++) {
        const Found *f = &s->found[h][l];
        if (!f->done)
            continue;
        all.done = true;
        all.configs += f->configs;
        all.kernels += f->kernels;
        all.build_s += f->build_s;
        all.run_s += f->run_s;
        all.cost_s += f->cost_s;
        if (f->ns < all.ns) {
            all.ns = f->ns;
            all.best = f->best;
        }
    }
    return all;
}

Found study_predicted(const StudyStencil *s, Studied h)
{
    return s->predicted[h] < 0 ? (Found){.ns = INFINITY, .best = -1}
                               : s->found[h][s->predicted[h]];
}

// The forest ----------------------------------------------------------------------------

void study_features(const StudyStencil *s, double x[STUDY_FEATURES])
{
    x[0] = s->points;
    x[1] = s->dims;
    x[2] = s->density;
    x[3] = s->unique;
    x[4] = s->adds;
    x[5] = s->muls;
}

bool study_main(const Study *study, const StudyStencil *s)
{
    return s->adds == 1 && s->muls == 1 &&
           (!study_is_stencil(s) || !memcmp(s->size, study->size, sizeof s->size));
}

static void find_size(Study *study)
{
    int most = 0;
    for (int i = 0; i < study->n; i++) {
        const StudyStencil *a = &study->stencil[i];
        int same = 0;
        for (int k = 0; k < study->n; k++)
            same += !memcmp(a->size, study->stencil[k].size, sizeof a->size);
        if (same > most) {
            most = same;
            memcpy(study->size, a->size, sizeof a->size);
        }
    }
}

// The same stencil, of whatever size and arithmetic: names differ in the latter's suffix.
static bool same_stencil(const StudyStencil *a, const StudyStencil *b)
{
    return a->points == b->points && a->dims == b->dims && a->unique == b->unique &&
           a->density == b->density;
}

// Those of higher arithmetic have a model of their own, fitted to them and the main set.
static bool teaches(const Study *study, const StudyStencil *s, const StudyStencil *of,
                    Studied h)
{
    bool dense = of->adds + of->muls > 2 && s->adds + s->muls > 2 &&
                 !memcmp(s->size, of->size, sizeof s->size);
    return s->oracle[h] >= 0 && study_is_stencil(s) && (study_main(study, s) || dense);
}

static int predict(const Study *study, const StudyStencil *of, Studied h, bool leave_out,
                   uint64_t seed)
{
    Matrix x = matrix_new(study->n, STUDY_FEATURES);
    int *class = xcalloc((size_t)study->n + 1, sizeof *class);
    int n = 0, answer = -1;
    for (int i = 0; i < study->n; i++) {
        const StudyStencil *s = &study->stencil[i];
        if (!teaches(study, s, of, h) || (leave_out && same_stencil(s, of)))
            continue;
        study_features(s, matrix_row(&x, n));
        class[n++] = s->oracle[h];
    }
    x.n = n;
    if (n > 0) {
        double at[STUDY_FEATURES], share[LOADS];
        Classes *classes = classes_fit(&x, class, LOADS, seed);
        study_features(of, at);
        answer = classes_predict(classes, at, STUDY_FEATURES, share);
        classes_free(classes);
    }
    matrix_free(&x);
    free(class);
    return answer;
}

bool study_pick(const Study *study, Studied h, const StencilShape *shape, uint64_t seed,
                Loading *loading)
{
    StudyStencil of = {.points = shape->points,
                       .density = shape->density,
                       .dims = shape->dims,
                       .unique = shape->unique,
                       .adds = 1,
                       .muls = 1};
    int picked = predict(study, &of, h, false, seed);
    *loading = (Loading)MAX(picked, 0);
    return picked >= 0;
}

static void predict_all(Study *study, uint64_t seed)
{
    for (int i = 0; i < study->n; i++)
        for (int h = 0; h < STUDIED; h++)
            if (study->stencil[i].oracle[h] >= 0 && study_is_stencil(&study->stencil[i]))
                study->stencil[i].predicted[h] =
                    predict(study, &study->stencil[i], (Studied)h, true, seed);
}

// Entry -----------------------------------------------------------------------------------

Study *study_read(const char *folder, const char *heuristics, uint64_t seed, Diags *diags)
{
    Arena *arena = arena_new();
    Study *study = NEW(arena, Study);
    study->arena = arena;
    bool ok = read_index(study, arena_printf(arena, "%s/index.csv", folder), diags);
    for (int i = 0; ok && i < study->n; i++)
        ok = open_stencil(study, &study->stencil[i], folder, diags);
    ok = ok && follow_all(study, heuristics, diags);
    if (!ok) {
        study_free(study);
        return NULL;
    }
    study->device = study->stencil[0].record->device;
    find_size(study);
    for (int i = 0; i < study->n; i++)
        find_oracles(&study->stencil[i]);
    predict_all(study, seed);
    return study;
}

void study_free(Study *study)
{
    if (!study)
        return;
    for (int i = 0; i < study->n; i++) {
        for (int l = 0; l < LOAD_WAYS; l++) {
            space_free(study->stencil[i].part[l]);
            space_free(study->stencil[i].part_any[l]);
        }
        recorded_free(study->stencil[i].record);
    }
    arena_free(study->arena);
}

// Questions -------------------------------------------------------------------------------

// The best of n of m points is the k-th fastest with probability C(m - k, n - 1) / C(m, n).
// Choices of failures alone are left out.
double study_expected(const StudyStencil *s, int n, double *deviation)
{
    int m = s->nrand;
    double *sorted = xcalloc((size_t)m + 1, sizeof *sorted);
    for (int i = 0; i < m; i++)
        sorted[i] = time_of(s, s->rand[i]);
    sort_doubles(sorted, m);
    double share = (double)n / m, sum = 0, squares = 0, weight = 0;
    for (int k = 0; k + n <= m && isfinite(sorted[k]); k++) {
        weight += share;
        sum += share * sorted[k];
        squares += share * sorted[k] * sorted[k];
        share *= (double)(m - k - n) / (m - k - 1);
    }
    free(sorted);
    double mean = sum / weight;
    *deviation = sqrt(fmax(squares / weight - mean * mean, 0));
    return mean;
}

// The choice of a parameter that is this one's value or word; -1: it has none such.
static int same_choice(const SpaceParam *param, const SpaceParam *other, int choice)
{
    for (int i = 0; i < param->n && !param->label == !other->label; i++)
        if (param->label ? strcmp(param->label[i], other->label[choice]) == 0
                         : param->value[i] == other->value[choice])
            return i;
    return -1;
}

// Records of different days differ in parameters: where one lacks a parameter, its kernels
// are those of the plain point's value in the other.
static bool translate(const StudyStencil *from, const Point *point, const StudyStencil *to,
                      Point *own)
{
    const Space *theirs = from->record->space, *ours = to->record->space;
    Point plain;
    bool ok = from->plain >= 0 && to->plain >= 0;
    if (!ok)
        return false;
    space_point(theirs, (uint64_t)from->plain, &plain);
    space_point(ours, (uint64_t)to->plain, own);
    for (int p = 0; ok && p < space_params(theirs); p++) {
        const SpaceParam *param = space_param(theirs, p);
        int i = space_find(ours, param->name);
        int choice =
            i < 0 ? -1 : same_choice(space_param(ours, i), param, point->choice[p]);
        if (i < 0)
            ok = point->choice[p] == plain.choice[p];
        else if ((ok = choice >= 0))
            own->choice[i] = (int16_t)choice;
    }
    return ok && space_valid(ours, own);
}

bool study_lookup(const StudyStencil *s, const StudyStencil *from, const Point *point,
                  double *ns)
{
    Point own;
    bool here = translate(from, point, s, &own);
    if (here)
        *ns = time_of(s, (int)space_number(s->record->space, &own));
    return here;
}

// Parameters that are one optimisation with the loading.
static bool is_loading(const char *name)
{
    return !strcmp(name, "scheme") || !strcmp(name, "vec") || !strcmp(name, "bx");
}

// In which optimisation two points differ: a parameter, LOADING for those of the loading;
// -1: in none, SEVERAL: in more than one.
enum { LOADING = SPACE_PARAMS_MAX, SEVERAL };

static int difference(const Space *space, const Point *a, const Point *b)
{
    int found = -1;
    for (int p = 0; p < space_params(space); p++) {
        if (a->choice[p] == b->choice[p])
            continue;
        int is = is_loading(space_param(space, p)->name) ? LOADING : p;
        found = found < 0 || found == is ? is : SEVERAL;
    }
    return found;
}

void study_independent(const StudyStencil *s, Point *point)
{
    const Space *space = s->record->space;
    double best[LOADING + 1];
    Point base;
    space_point(space, (uint64_t)s->random.best, &base);
    *point = base;
    for (int i = 0; i <= LOADING; i++)
        best[i] = s->random.ns;
    for (int i = 0; i < s->record->n; i++) {
        Point other;
        space_point(space, (uint64_t)i, &other);
        int in = difference(space, &base, &other);
        double ns = time_of(s, i);
        if (in < 0 || in == SEVERAL || !is_plain(space, &other) || ns >= best[in])
            continue;
        best[in] = ns;
        for (int p = 0; p < space_params(space); p++)
            if (in == p || (in == LOADING && is_loading(space_param(space, p)->name)))
                point->choice[p] = other.choice[p];
    }
}

Found study_passes(const Study *study, const StudyStencil *s, int passes)
{
    int l = s->oracle[STEPS_DIMENSION];
    if (l < 0)
        return (Found){.ns = INFINITY, .best = -1};
    Steps steps = *study->steps[STEPS_DIMENSION];
    Step *copy = xcalloc((size_t)steps.steps.len, sizeof *copy);
    memcpy(copy, steps.steps.at, (size_t)steps.steps.len * sizeof *copy);
    steps.steps.at = copy;
    for (int i = 0; i < steps.steps.len; i++)
        if (copy[i].kind == STEP_REPEAT)
            copy[i].n = passes;
    Found found = follow(s, &steps, s->part[l]);
    free(copy);
    return found;
}

double study_gflops(const StudyStencil *s, double ns)
{
    double elements = (double)s->size[0] * (double)s->size[1] * (double)s->size[2];
    return elements * s->points * (s->adds + s->muls) / ns;
}

// The number of a point that differs in some words; -1: that was not recorded.
static int with(const Space *space, Point point, const char *const (*word)[2], int n)
{
    for (int i = 0; i < n; i++)
        space_set(space, &point, word[i][0], word[i][1]);
    return space_valid(space, &point) ? (int)space_number(space, &point) : -1;
}

double study_merged(const StudyStencil *s, int *number)
{
    static const char *const unmerged[][2] = {{"by", "1"}, {"bz", "1"}};
    const Space *space = s->record->space;
    double least = INFINITY, gain = NAN;
    for (int i = 0; i < s->record->n; i++) {
        Point point;
        space_point(space, (uint64_t)i, &point);
        bool merged =
            value_or(space, &point, "by", 1) > 1 || value_or(space, &point, "bz", 1) > 1;
        bool other = any_group(space, &point) || all_loads(space, &point);
        int base = merged && !other ? with(space, point, unmerged, COUNTOF(unmerged)) : -1;
        if (base < 0 || !(time_of(s, i) < least))
            continue;
        least = time_of(s, i);
        gain = time_of(s, base) / least;
        *number = i;
    }
    return gain;
}

double study_removal(const StudyStencil *s, int number)
{
    static const char *const kept[][2] = {{"loads", "all"}};
    Point point;
    if (number < 0 || space_find(s->record->space, "loads") < 0)
        return NAN;
    space_point(s->record->space, (uint64_t)number, &point);
    int other = with(s->record->space, point, kept, COUNTOF(kept));
    return other < 0 ? NAN : time_of(s, other) / time_of(s, number);
}
