// SPDX-License-Identifier: Apache-2.0
//
// Plans that are stored: of the problem at hand, or of the same program at the nearest
// sizes. A session knows its sizes by its label, and its program by the hash that the
// program gets when it is bound to these sizes again.
//
// A store is a file, which others may have made. So no plan is used before it was built,
// run and compared with the reference for this very problem on this device: by the search
// that found it, or here when it is first wanted. What came of it is kept, good or bad.
// What a plan says of its time and of the search behind it is believed: that can make it
// slow only.

#include "tune/tune.h"

#include "store/wisdom.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void plan_key(const Problem *problem, uint64_t space, const DeviceInfo *device,
              StoreKey *key)
{
    *key = (StoreKey){.problem = problem_label(problem),
                      .problem_hash = problem_hash(problem),
                      .space_hash = space,
                      .fingerprint = device->fingerprint,
                      .device = device->name,
                      .version = TRIAL_VERSION};
}

// Nearness ----------------------------------------------------------------------------

enum { SIZES_MOST = 64 };

// The sizes that a label ends in: "jacobi2d N=96 M=64". -1: it is none.
static int label_sizes(const char *label, Arena *arena, Binding *binding)
{
    char *save = NULL, *text = arena_strdup(arena, label);
    int n = 0;
    strtok_r(text, " ", &save);
    for (char *item; (item = strtok_r(NULL, " ", &save));) {
        if (n == SIZES_MOST || !binding_parse(item, arena, &binding[n++]))
            return -1;
    }
    return n;
}

// INFINITY where the sizes have other names.
static double distance(const Problem *problem, const Binding *other, int n)
{
    double sum = 0;
    if (n != problem->nbinding)
        return INFINITY;
    for (int i = 0; i < n; i++) {
        const Binding *mine = &problem->binding[i];
        if (strcmp(mine->name, other[i].name) != 0 || mine->value < 1 || other[i].value < 1)
            return INFINITY;
        sum += fabs(log2((double)mine->value / (double)other[i].value));
    }
    return sum;
}

// A stored session that may serve, as far as its key tells.
typedef struct {
    StoreBest best;
    double distance;
    Binding *binding;
    int nbinding;
} Near;

enum { CHECKS_MOST = 4 }; // at once, of a store that is wrong from end to end

// What was found when a point was checked.
typedef struct {
    const char *point;
    TrialStatus status;
    const char *log;
} WisdomVerdict;

typedef struct {
    const Variants *variants;
    const PlanAsked *asked;
    const DeviceInfo *device;
    uint64_t space;
    uint64_t span_hash; // of the problem that stands for all sizes; 0: there is none
    Arena *arena;
    Diags *diags;
    StoreKey key;
    VEC(Near) near;
    Store *store;
    int64_t session;            // of the key
    VEC(WisdomVerdict) verdict; // of this session's points
    Goal *goal;                 // by which the best is found
    Runner *runner;             // NULL until a plan is checked
    int checks;
    const char *elsewhere; // as PlanFound
} Hunt;

static const double LESSER_APART = -0.9; // nearer than anything but the very same
static const double DEVICE_APART = 1e6;  // farther than any size
static const double RULE_APART = -0.5;   // a rule for this size, too: nearer than others

static double session_distance(Hunt *s, Near *near)
{
    const Problem *problem = s->variants->problem;
    const StoreKey *key = &near->best.key;
    size_t name = strlen(problem->name);
    bool device = strcmp(key->fingerprint, s->device->fingerprint) == 0;
    bool lesser = strcmp(key->version, LESSER_VERSION) == 0;
    if ((!lesser && strcmp(key->version, TRIAL_VERSION) != 0) ||
        strncmp(key->problem, problem->name, name) != 0 ||
        (key->problem[name] && key->problem[name] != ' '))
        return INFINITY;
    bool same = key->problem_hash == s->key.problem_hash;
    if (same && !device)
        s->elsewhere = arena_strdup(s->arena, key->fingerprint);
    if (!device && !(s->asked->reach & REACH_DEVICES))
        return INFINITY;
    near->binding = NEW_ARRAY(s->arena, Binding, SIZES_MOST);
    near->nbinding = label_sizes(key->problem, s->arena, near->binding);
    if (device && s->span_hash && key->problem_hash == s->span_hash)
        return same ? -1 : RULE_APART;
    double far = same ? 0 : distance(problem, near->binding, near->nbinding);
    if (same && device && key->space_hash == s->space)
        return lesser ? LESSER_APART : -1; // the very same
    return same || (s->asked->reach & REACH_SIZES) ? far + (device ? 0 : DEVICE_APART)
                                                   : INFINITY;
}

static void consider(void *user, const StoreBest *best)
{
    Hunt *s = user;
    Near near = {.best = *best};
    if (best->rigor < s->asked->least)
        return;
    near.distance = session_distance(s, &near);
    if (!(near.distance < INFINITY))
        return;
    if (!wisdom_plausible(best)) {
        diag_warning(s->diags, span_none, "C086",
                     "a plan in %s is not used: its texts are damaged", s->asked->store);
        return;
    }
    near.best.key.problem = arena_strdup(s->arena, best->key.problem);
    near.best.key.device = arena_strdup(s->arena, best->key.device);
    near.best.key.fingerprint = arena_strdup(s->arena, best->key.fingerprint);
    VEC_PUSH(s->arena, &s->near, near);
}

static int compare_near(const void *a, const void *b)
{
    const Near *p = a, *q = b;
    if (p->distance != q->distance)
        return p->distance < q->distance ? -1 : 1;
    return p->best.session < q->best.session ? -1 : 1;
}

// Whose it is ---------------------------------------------------------------------------

// Is the session of this program, at its sizes? Then bytes are those of its problem.
static bool is_same_program(const Hunt *s, const Near *near, double *bytes)
{
    const Problem *problem = s->variants->problem;
    *bytes = problem_bytes(problem);
    if (near->best.key.problem_hash == s->key.problem_hash ||
        near->best.key.problem_hash == s->span_hash)
        return true;
    Diags quiet = {.arena = arena_new()};
    Problem *own = problem_again(problem, &quiet);
    bool same = own->kind && problem_bind(own, near->binding, near->nbinding, &quiet) &&
                problem_hash(own) == near->best.key.problem_hash;
    if (same)
        *bytes = problem_bytes(own);
    problem_free(own);
    arena_free(quiet.arena);
    return same;
}

// Checking ----------------------------------------------------------------------------

static void load_verdict(void *user, const char *point, TrialStatus status, const char *log)
{
    Hunt *s = user;
    VEC_PUSH(s->arena, &s->verdict,
             (WisdomVerdict){arena_strdup(s->arena, point), status,
                             arena_strdup(s->arena, log)});
}

static const WisdomVerdict *find_verdict(const Hunt *s, const char *point)
{
    for (int i = s->verdict.len - 1; i >= 0; i--) // the last one counts
        if (strcmp(s->verdict.at[i].point, point) == 0)
            return &s->verdict.at[i];
    return NULL;
}

// Kernels of a target that the device takes; described devices take none.
static bool runs_here(const Hunt *s)
{
    const DeviceKind *kind;
    int index;
    return s->asked->place && s->device->fingerprint[0] &&
           device_parse(s->device->id, &kind, &index) &&
           kind == device_kind_of(target_name(s->variants->target));
}

static bool open_runner(Hunt *s)
{
    const char *how;
    const Problem *problem = s->variants->problem;
    const Workplace *place = s->asked->place;
    ProblemData *data =
        s->runner || !problem_fits(problem, s->device, s->diags)
            ? NULL
            : problem->kind->data(problem, s->asked->seed, NULL, s->arena, s->diags);
    if (!data || !problem->kind->expect(problem, data, s->device->id, place, s->arena, &how,
                                        s->diags))
        return s->runner != NULL;
    RunnerConfig config = {.device = s->device->id,
                           .worker = place->worker,
                           .folder = place->folder,
                           .nbuffer = data->nbuffer,
                           .buffer = data->buffer,
                           .judge = data->judge,
                           .tolerance = data->tolerance,
                           .build_limit_s = problem->kind->limit_s,
                           .run_limit_s = problem->kind->limit_s,
                           .sandbox = place->sandbox,
                           .stop = place->stop,
                           .workers = 1};
    s->runner = runner_open(&config, s->diags);
    return s->runner &&
           (strcmp(runner_device(s->runner)->fingerprint, s->device->fingerprint) == 0 ||
            diag_world(s->diags, "C051", "%s is now another device: %s", s->device->id,
                       runner_device(s->runner)->name));
}

// As a trial is made. False: the world failed.
static bool run_point(Hunt *s, const Point *point, Trial *trial)
{
    enum { SAMPLES = 5 };
    Candidate candidate;
    Diags quiet = {.arena = s->arena};
    *trial = (Trial){.status = TRIAL_BUILD_FAILED, .time_ns = INFINITY};
    bool made = variants_candidate(s->variants, point, s->variants->problem->name, s->arena,
                                   &candidate, &quiet);
    bool ok =
        !made || runner_run_one(s->runner, &candidate.job, SAMPLES, trial, NULL, s->diags);
    const Stop *stop = s->asked->place->stop;
    if (ok && stop_due(stop))
        ok = diag_world(s->diags, "C093", "the plan was not checked: %s", stop_text(stop));
    AutoBuf log = buf_new();
    if (!made) {
        diags_print(&log, &quiet);
        trial->log = xstrdup(log.text);
    }
    candidate_release(&candidate);
    return ok;
}

// An error of the device may be over tomorrow. Of this very problem it is a trial like
// others: what wisdom claims gives way to it, and what was right and is not any more.
static bool keep_verdict(Hunt *s, const char *text, bool replaces, const Trial *trial)
{
    StoreTrial stored = store_trial(text, trial);
    stored.seed = s->asked->seed;
    load_verdict(s, text, trial->status, trial->log ? trial->log : "");
    return trial->status == TRIAL_FAILED ||
           (store_put_checked(s->store, s->session, text, trial->status, trial->log,
                              s->diags) &&
            (!replaces || store_put_again(s->store, s->session, &stored, s->diags)));
}

static void say_refused(const Hunt *s, const WisdomVerdict *verdict)
{
    diag_warning(s->diags, span_none, "C087",
                 "the stored plan %s of %s is not used: checked on %s, its kernel was "
                 "%s%s%.*s",
                 verdict->point, problem_label(s->variants->problem), s->device->name,
                 trial_status_name[verdict->status], verdict->log[0] ? ": " : "",
                 (int)strcspn(verdict->log, "\n"), verdict->log);
}

// The fastest of a session, as far as it may be used.
typedef struct {
    Hunt *s;
    const char *stray; // one that is no point of the space here
    const char *rule;  // that the point is from
    Point point;
    double cost; // by the goal, INFINITY: there is none
    double ns;
    bool claimed, checked;
} Fastest;

static bool check(Hunt *s, const Near *near, const Fastest *fastest)
{
    Trial trial = {0};
    const char *text = point_text(s->variants->space, &fastest->point, s->arena);
    bool ok = open_runner(s) && run_point(s, &fastest->point, &trial);
    bool right = trial.status == TRIAL_OK, own = near->best.session == s->session;
    ok = ok && keep_verdict(s, text, own && (fastest->claimed || !right), &trial);
    if (ok && !right)
        say_refused(s, find_verdict(s, text));
    trial_release(&trial);
    s->checks++;
    return ok;
}

// Taking one --------------------------------------------------------------------------

static void keep_fastest(void *user, const StoreTrial *trial)
{
    Fastest *fastest = user;
    Hunt *s = fastest->s;
    Point point;
    const char *text = trial->point;
    Rule rule;
    if (trial->status != TRIAL_OK)
        return;
    if (is_rule(text) && rule_parse(text, s->arena, &rule)) {
        const Problem *problem = s->variants->problem;
        int row = rule_choose(&rule, problem->binding, problem->nbinding);
        text = row < 0 ? text : rule.row[row].point;
        fastest->rule = arena_strdup(s->arena, trial->point);
    }
    if (!point_parse(s->variants->space, text, &point) ||
        !space_valid(s->variants->space, &point)) {
        fastest->stray = arena_strdup(s->arena, trial->point);
        return;
    }
    const WisdomVerdict *verdict =
        s->verdict.len ? find_verdict(s, point_text(s->variants->space, &point, s->arena))
                       : NULL;
    bool usable =
        verdict ? verdict->status == TRIAL_OK : s->checks < CHECKS_MOST || !runs_here(s);
    GoalValues values;
    goal_values(s->goal, &point, trial->time_ns, &trial->measures, &values);
    if (usable && values.cost < fastest->cost) {
        fastest->cost = values.cost;
        fastest->ns = trial->time_ns;
        fastest->point = point;
        fastest->claimed = trial->nsample == 0;
        fastest->checked = verdict != NULL;
    }
}

static bool find_fastest(Hunt *s, const Near *near, Fastest *fastest)
{
    *fastest = (Fastest){.s = s, .cost = INFINITY};
    return store_each(s->store, near->best.session, keep_fastest, fastest, s->diags);
}

// The fastest of a session that was right when it was checked, or cannot be checked here.
// 1, 0, -1 as plan_find.
static int take_fastest(Hunt *s, const Near *near, Fastest *fastest)
{
    if (!find_fastest(s, near, fastest))
        return -1;
    if (fastest->stray && near->distance < 0)
        diag_warning(s->diags, span_none, "C088",
                     "the stored plan %s of %s is not used: it is not a point of its space",
                     fastest->stray, near->best.key.problem);
    while (fastest->cost < INFINITY && !fastest->checked && runs_here(s))
        if (!check(s, near, fastest) || !find_fastest(s, near, fastest))
            return -1;
    return fastest->cost < INFINITY;
}

// 1: the session has a point for the space here; 0, -1 as plan_find.
static int take(Hunt *s, const Near *near, PlanFound *found)
{
    double bytes = 0;
    Fastest fastest;
    if (!is_same_program(s, near, &bytes))
        return 0;
    int got = take_fastest(s, near, &fastest);
    if (got <= 0)
        return got;
    const StoreKey *key = &near->best.key;
    double scale = bytes > 0 ? problem_bytes(s->variants->problem) / bytes : 1;
    bool other_size =
        key->problem_hash != s->key.problem_hash && key->problem_hash != s->span_hash;
    *found =
        (PlanFound){.point = fastest.point,
                    .rule = problem_spans(s->variants->problem) ? fastest.rule : NULL,
                    .checked = fastest.checked,
                    .other_size = other_size,
                    .other_device = strcmp(key->fingerprint, s->device->fingerprint) != 0,
                    .problem = key->problem,
                    .device = key->device,
                    .fingerprint = key->fingerprint,
                    .time_ns = fastest.ns * (other_size ? scale : 1),
                    .rigor = near->best.rigor};
    return 1;
}

// The sessions that may serve, nearest first, and what is known of this problem's points.
static bool look(Hunt *s)
{
    if (!store_each_best(s->store, consider, s, s->diags))
        return false;
    if (s->near.len)
        qsort(s->near.at, (size_t)s->near.len, sizeof *s->near.at, compare_near);
    s->session = store_session(s->store, &s->key, s->diags);
    return s->session &&
           store_each_checked(s->store, s->session, load_verdict, s, s->diags);
}

int plan_find(const Variants *variants, const PlanAsked *asked, Arena *arena,
              PlanFound *found, Diags *diags)
{
    Hunt s = {.variants = variants,
              .asked = asked,
              .device = asked->device,
              .space = space_hash(variants->space),
              .span_hash = problem_is_generic(variants->problem)
                               ? problem_span_hash(variants->problem)
                               : 0,
              .arena = arena,
              .diags = diags};
    *found = (PlanFound){0};
    if (access(asked->store, F_OK) != 0)
        return 0;
    s.store = store_open(asked->store, diags);
    if (!s.store)
        return -1;
    plan_key(variants->problem, s.space, asked->device, &s.key);
    s.goal = problem_goal(variants->problem, variants->space, diags);
    int got = s.goal && look(&s) ? 0 : -1;
    for (int i = 0; got == 0 && i < s.near.len; i++)
        got = take(&s, &s.near.at[i], found);
    for (int i = 0; got == 0 && !s.checks && i < s.verdict.len; i++)
        if (s.verdict.at[i].status != TRIAL_OK) // known before, so nobody said so yet
            say_refused(&s, &s.verdict.at[i]);
    found->elsewhere = s.elsewhere;
    if (s.runner)
        runner_close(s.runner);
    goal_close(s.goal);
    store_close(s.store);
    return got;
}

void plan_warn(const PlanFound *found, const Variants *variants, const DeviceInfo *device,
               Diags *diags)
{
    if (found->other_size)
        diag_warning(diags, span_none, "C053",
                     "nothing is stored for %s; this is the plan of %s, predicted to be "
                     "good here and not measured",
                     problem_label(variants->problem), found->problem);
    if (!found->other_device)
        return;
    bool namesake = strcmp(found->device, device->name) == 0; // another driver, say
    diag_warning(diags, span_none, "C054",
                 "the plan was found on another device: %s%s%s, not %s%s%s", found->device,
                 namesake ? ", fingerprint " : "", namesake ? found->fingerprint : "",
                 device->name, namesake ? ", fingerprint " : "",
                 namesake ? device->fingerprint : "");
}

// Models ------------------------------------------------------------------------------
