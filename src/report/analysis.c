// SPDX-License-Identifier: Apache-2.0
//
// The analysis of a record (report.h).
//
// The importance of a parameter is that of permutation (Breiman 2001), on rows that the
// forest has not seen: five folds. It tells what shuffling costs a model that knows the
// others, so two parameters that say the same share their importance. Features are judged
// one by one, by mutual information with the time, as in paper 000.
#include "report/report.h"

#include "calibrate/describe.h"
#include "calibrate/predict.h"
#include "model/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDS = 5, LEAST_ROWS = 30, MOST_ROWS = 3000 };

// Parameters ----------------------------------------------------------------------------

// Rows of choices and logarithms of times, for the forest.
typedef struct {
    const Run *run;
    Matrix x;
    double *y;
    int *row, n; // trials by number
    double *unseen_ns;
    Rng rng;
} Effects;

static void fill_rows(Effects *e, const Analysis *a)
{
    e->n = MIN(a->nok, MOST_ROWS);
    e->row = xcalloc((size_t)a->nok + 1, sizeof *e->row);
    memcpy(e->row, a->ok, sizeof *e->row * (size_t)a->nok);
    rng_sample(&e->rng, e->row, sizeof *e->row, a->nok,
               e->n); // in random order, so that folds are fair
    e->x = matrix_new(e->n, e->run->nparam);
    e->y = xcalloc((size_t)e->n + 1, sizeof *e->y);
    for (int i = 0; i < e->n; i++) {
        const RunTrial *trial = &e->run->trial[e->row[i]];
        for (int p = 0; p < e->run->nparam; p++)
            matrix_row(&e->x, i)[p] = trial->point.choice[p];
        e->y[i] = log(trial->time_ns);
    }
}

// predicted: x->n, written.
static double squared_error(const ModelKind *kind, const void *fit, const Matrix *x,
                            const double *y, double *predicted)
{
    double sum = 0;
    kind->predict(fit, x, predicted);
    for (int i = 0; i < x->n; i++)
        sum += (predicted[i] - y[i]) * (predicted[i] - y[i]);
    return sum;
}

static void shuffle_column(Matrix *x, int column, Rng *rng)
{
    for (int i = x->n - 1; i > 0; i--) {
        double *a = &matrix_row(x, i)[column];
        double *b = &matrix_row(x, (int)rng_below(rng, (uint64_t)i + 1))[column];
        double swap = *a;
        *a = *b;
        *b = swap;
    }
}

// Adds the squared errors of a fold: with nothing shuffled, and with each parameter.
static void add_fold(Effects *e, int fold, double *plain, double *shuffled)
{
    const ModelKind *kind = model_find("forest");
    int *in = xcalloc((size_t)e->n + 1, sizeof *in), nin = 0, nout = 0;
    AUTO_FREE int *out = xcalloc((size_t)e->n + 1, sizeof *out);
    AUTO_FREE double *yin = xcalloc((size_t)e->n + 1, sizeof *yin);
    AUTO_FREE double *yout = xcalloc((size_t)e->n + 1, sizeof *yout);
    AUTO_FREE double *predicted = xcalloc((size_t)e->n + 1, sizeof *predicted);
    for (int i = 0; i < e->n; i++)
        if (i % FOLDS == fold) {
            yout[nout] = e->y[i];
            out[nout++] = i;
        } else {
            yin[nin] = e->y[i];
            in[nin++] = i;
        }
    AutoMatrix seen = matrix_select(&e->x, in, nin);
    void *fit = kind->fit(&seen, yin, 1 + (uint64_t)fold);
    AutoMatrix held = matrix_select(&e->x, out, nout);
    *plain += squared_error(kind, fit, &held, yout, predicted);
    for (int i = 0; i < nout; i++)
        e->unseen_ns[e->row[out[i]]] = exp(predicted[i]);
    for (int p = 0; p < e->run->nparam; p++) {
        Matrix changed = matrix_select(&e->x, out, nout);
        shuffle_column(&changed, p, &e->rng);
        shuffled[p] += squared_error(kind, fit, &changed, yout, predicted);
        matrix_free(&changed);
    }
    kind->free(fit);
    free(in);
}

static double variation(const double *y, int n)
{
    double mean = metric_mean(y, n), sum = 0;
    for (int i = 0; i < n; i++)
        sum += (y[i] - mean) * (y[i] - mean);
    return sum;
}

static void sort_params(Analysis *a)
{
    for (int i = 0; i < a->run->nparam; i++) {
        int at = i;
        for (; at > 0 && a->importance[a->order[at - 1]] < a->importance[i]; at--)
            a->order[at] = a->order[at - 1];
        a->order[at] = i;
    }
}

static void find_importance(Analysis *a, Arena *arena)
{
    a->unseen_ns = NEW_ARRAY(arena, double, a->run->n + 1);
    for (int i = 0; i < a->run->n; i++)
        a->unseen_ns[i] = NAN;
    Effects e = {.run = a->run, .unseen_ns = a->unseen_ns};
    double plain = 0, shuffled[SPACE_PARAMS_MAX] = {0};
    a->explained = NAN;
    e.rng = rng_new(a->run->seed);
    if (a->nok >= LEAST_ROWS) {
        fill_rows(&e, a);
        double all = variation(e.y, e.n);
        for (int fold = 0; fold < FOLDS && all > 0; fold++)
            add_fold(&e, fold, &plain, shuffled);
        for (int p = 0; p < a->run->nparam && all > 0; p++)
            a->importance[p] = (shuffled[p] - plain) / all;
        a->explained = all > 0 ? 1 - plain / all : NAN;
    }
    sort_params(a);
    matrix_free(&e.x);
    free(e.y);
    free(e.row);
}

// Kernels -------------------------------------------------------------------------------

// The program of the record, as it was read and bound there.
typedef struct {
    Problem *problem;
    Derivation *derivation;
    DeviceModel device;
    FeatureSetting setting;
    const Weights *weights; // of the device; NULL: not known
    double *weighed_ns;     // nkernel: by the weights; NAN: not known
} Kernels;

static bool open_program(Kernels *k, const Run *run, Diags *diags)
{
    Binding *binding = NEW_ARRAY(diags->arena, Binding, run->nsize + 1);
    for (int i = 0; i < run->nsize; i++)
        binding[i] = (Binding){run->size[i], run->size_value[i]};
    k->problem = problem_parse(run->file, run->text, diags);
    if (!k->problem || !k->problem->program)
        return false;
    math_find(run->math, &k->problem->program->math);
    if (!problem_bind(k->problem, binding, run->nsize, diags))
        return false;
    k->derivation = derive_new(k->problem->general, &run->device, diags);
    describe_device(&run->device, &k->device);
    k->setting = (FeatureSetting){&k->device, k->problem->binding, k->problem->nbinding};
    return k->derivation != NULL;
}

// As a ranking by weights would: by demands where the weights have them.
static double weigh(const Kernels *k, const Unit *unit, Arena *scratch)
{
    double seconds;
    bool known =
        k->weights && predict_unit(k->weights, unit, &k->setting, scratch, &seconds);
    return known ? 1e9 * seconds : NAN;
}

static bool find_kernel(Kernels *k, const Run *run, const RunTrial *trial, double *feature,
                        double *weighed_ns)
{
    AutoArena *scratch = arena_new();
    IrMark mark = ir_mark(k->problem->ir);
    Point point;
    Diags quiet = {.arena = scratch};
    AutoBuf text = buf_new();
    run_point(&text, run, &trial->point);
    const Space *space = derive_space(k->derivation);
    bool ok = point_parse(space, text.text, &point) && space_valid(space, &point);
    Unit *unit = ok ? derive_unit(k->derivation, &point, false, scratch, &quiet) : NULL;
    ok = unit && features_unit(unit, &k->setting, feature);
    if (ok)
        *weighed_ns = weigh(k, unit, scratch);
    ir_release(k->problem->ir, mark);
    return ok;
}

// An even choice of the trials that ran, and the best.
static void choose_kernels(Analysis *a, Arena *arena)
{
    const RunTrial *trial = a->run->trial;
    int most = MIN(a->nok, ANALYSIS_KERNELS), best = 0;
    a->kernel = NEW_ARRAY(arena, int, most + 2);
    for (int i = 1; i < a->nok; i++)
        if (trial[a->ok[i]].time_ns < trial[a->ok[best]].time_ns)
            best = i;
    bool has_best = false;
    for (int i = 0; i < most; i++) {
        int k = (int)((int64_t)i * a->nok / most);
        has_best |= k == best;
        a->kernel[a->nkernel++] = a->ok[k];
    }
    if (!has_best && a->nok)
        a->kernel[a->nkernel++] = a->ok[best];
}

static bool find_features(Analysis *a, Kernels *k)
{
    int n = 0;
    a->feature = matrix_new(a->nkernel, FEATURES);
    k->weighed_ns = xcalloc((size_t)a->nkernel + 1, sizeof *k->weighed_ns);
    for (int i = 0; i < a->nkernel; i++)
        if (find_kernel(k, a->run, &a->run->trial[a->kernel[i]], matrix_row(&a->feature, n),
                        &k->weighed_ns[n]))
            a->kernel[n++] = a->kernel[i];
    bool some = n > 0;
    if (!some)
        matrix_free(&a->feature);
    a->nkernel = a->feature.n = n;
    return some;
}

static void find_redundancy(Analysis *a)
{
    AUTO_FREE double *x = xcalloc((size_t)a->nkernel + 1, sizeof *x);
    AUTO_FREE double *y = xcalloc((size_t)a->nkernel + 1, sizeof *y);
    for (int i = 0; i < a->nkernel; i++)
        y[i] = a->run->trial[a->kernel[i]].time_ns;
    for (int f = 0; f < FEATURES; f++) {
        for (int i = 0; i < a->nkernel; i++)
            x[i] = matrix_row(&a->feature, i)[f];
        a->redundancy[f] = metric_redundancy(x, y, a->nkernel);
    }
}

// Models --------------------------------------------------------------------------------

static void finish_prediction(const Analysis *a, Prediction *p)
{
    AUTO_FREE double *cost = xcalloc((size_t)a->nkernel + 1, sizeof *cost);
    for (int i = 0; i < a->nkernel; i++) {
        double ns = a->run->trial[a->kernel[i]].time_ns;
        cost[i] = p->is_time ? ns : -ns;
    }
    p->spearman = metric_spearman(cost, p->value, a->nkernel);
}

static void predict_by_model(Analysis *a, const Model *model, Arena *arena, Prediction *p)
{
    AutoMatrix x = matrix_new(a->nkernel, model->d);
    bool known = true;
    for (int i = 0; i < a->nkernel; i++)
        for (int c = 0; c < model->d; c++) {
            double *value = &matrix_row(&x, i)[c];
            known &= column_value(model->feature[c], matrix_row(&a->feature, i), value) &&
                     isfinite(*value);
        }
    if (known) {
        *p = (Prediction){model->kind->name, false,
                          NEW_ARRAY(arena, double, a->nkernel + 1), NAN};
        model_predict(model, &x, p->value);
        finish_prediction(a, p);
    }
}

static void predict_by_weights(Analysis *a, const Kernels *k, Arena *arena, Prediction *p)
{
    bool known = k->weights && a->nkernel;
    for (int i = 0; i < a->nkernel; i++)
        known = known && isfinite(k->weighed_ns[i]);
    if (!known)
        return;
    *p = (Prediction){"weights", true, NEW_ARRAY(arena, double, a->nkernel + 1), NAN};
    memcpy(p->value, k->weighed_ns, sizeof *p->value * (size_t)a->nkernel);
    finish_prediction(a, p);
}

// A problem that was not derived here has only its trials: each is predicted from the
// others.
static void predict_by_trials(Analysis *a, Arena *arena)
{
    Prediction *p = &a->predicted[0];
    int n = 0;
    *p = (Prediction){"forest", true, NEW_ARRAY(arena, double, a->nkernel + 1), NAN};
    for (int i = 0; i < a->nkernel; i++)
        if (isfinite(a->unseen_ns[a->kernel[i]])) {
            p->value[n] = a->unseen_ns[a->kernel[i]];
            a->kernel[n++] = a->kernel[i];
        }
    a->nkernel = n;
    if (n)
        finish_prediction(a, p);
    else
        *p = (Prediction){0};
}

static const Weights *find_weights(const Run *run, Arena *arena)
{
    Weights *weights = NEW(arena, Weights);
    Diags quiet = {.arena = arena};
    return weights_load(weights, NULL, run->device.fingerprint, &quiet) ? weights : NULL;
}

static bool predict(Analysis *a, const Kernels *k, const char *path, const char *models,
                    Arena *arena, Diags *diags)
{
    Diags quiet = {.arena = arena};
    predict_by_weights(a, k, arena, &a->predicted[1]);
    const char *file = path;
    if (!file && models)
        file = arena_printf(arena, "%s/%s.json.gz", models,
                            a->run->device.is_cpu ? "cpu" : "gpu");
    Model *model = file ? model_load(file, path ? diags : &quiet) : NULL;
    if (model)
        predict_by_model(a, model, arena, &a->predicted[0]);
    model_free(model);
    return model || !path;
}

// All of it -----------------------------------------------------------------------------

static bool analyse_kernels(Analysis *a, const char *path, const char *models, Arena *arena,
                            Diags *diags)
{
    Kernels k = {.weights = find_weights(a->run, arena)};
    bool ok = true;
    Diags quiet = {.arena = arena};
    if (strcmp(a->run->kind, "program") != 0)
        a->unknown = strcmp(a->run->kind, "script") == 0
                         ? "the kernels of a script are not analysed, only its trials"
                         : "the text of a template is not analysed, only its trials";
    else if (strcmp(a->run->version, CODEGEN_VERSION) != 0)
        a->unknown = "the record was made by another version of the code generator";
    else if (!open_program(&k, a->run, &quiet) || !find_features(a, &k))
        a->unknown = "the kernels of the record could not be derived again";
    if (!a->unknown) {
        find_redundancy(a);
        ok = predict(a, &k, path, models, arena, diags);
    } else if (!a->feature.n) {
        predict_by_trials(a, arena);
    }
    derive_free(k.derivation);
    problem_free(k.problem);
    free(k.weighed_ns);
    return ok;
}

bool analyse(const Run *run, const char *model, const char *models, Arena *arena,
             Analysis *a, Diags *diags)
{
    *a = (Analysis){.run = run, .ok = NEW_ARRAY(arena, int, run->n + 1)};
    for (int i = 0; i < run->n; i++)
        if (run->trial[i].status == TRIAL_OK)
            a->ok[a->nok++] = i;
    find_importance(a, arena);
    choose_kernels(a, arena);
    return analyse_kernels(a, model, models, arena, diags);
}

void analysis_release(Analysis *a)
{
    matrix_free(&a->feature);
}
