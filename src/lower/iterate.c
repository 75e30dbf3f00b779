// SPDX-License-Identifier: Apache-2.0
//
// Iterate at host level, and prefixes that are arrays: the launches of their steps.
//
//   method  Kernels of a step, or of several, are made once, as from one state to another;
//           each launch binds them to the buffers that it really reads and writes. What a
//           step passes on as it stands (of two time levels the newer one becomes the
//           older) is not copied: the next launch binds its buffer elsewhere. The number of
//           a step, where it is asked for (counter.c), is an argument of its launches.

#include "lower/internal.h"

#include <string.h>

enum { PLANES_MAX = 1024, LAUNCHES_MAX = 1000000 };

// Arrays of scalars that a type is made of: one, or those of a tuple's components.
int parts_of(const Type *type)
{
    const Type *tuple = type_tuple_of(type);
    int n = 0;
    for (int i = 0; tuple && i < tuple->n; i++)
        n += parts_of(tuple->item[i]);
    return tuple ? n : 1;
}

// The buffers of a view that is nothing but whole buffers; false if it is more, or a value
// that is in no memory.
static bool whole_buffers(const View *view, Buffer **buffer, int *n)
{
    if (view->kind == V_TUPLE) {
        int items = type_tuple_of(view->type)->n;
        for (int i = 0; i < items; i++)
            if (!whole_buffers(view->item[i], buffer, n))
                return false;
        return true;
    }
    int64_t offset;
    if (view->kind != V_MEM || view->buffer->space != MEM_GLOBAL || view->buffer->value ||
        *n == PLANES_MAX || !arith_is_const(view->offset, &offset) || offset != 0)
        return false;
    buffer[(*n)++] = (Buffer *)view->buffer;
    return true;
}

void list_arrays(Lower *l, const View *view, const View **list, int *n)
{
    const Type *tuple = type_tuple_of(view->type);
    for (int i = 0; tuple && i < tuple->n && !l->failed; i++)
        list_arrays(l, view_get(l, view, i), list, n);
    if (!tuple)
        list[(*n)++] = view;
}

// Copies --------------------------------------------------------------------------------

typedef struct {
    const View *from, *to;
    int dims; // left, of those that items share
} ItemCopy;

static void copy_dim(Lower *l, ItemCopy copy);

static void copy_items(Lower *l, void *user, const Arith *at)
{
    const ItemCopy *copy = user;
    copy_dim(l, (ItemCopy){view_elem(l, copy->from, at), view_elem(l, copy->to, at),
                           copy->dims - 1});
}

static void copy_dim(Lower *l, ItemCopy copy)
{
    if (copy.dims > 0)
        gen_loop(l, LOOP_GLB, copy.dims - 1, false, copy.from->type->len, copy_items,
                 &copy);
    else
        gen_copy(l, copy.from, copy.to);
}

// A kernel for each array, with an item for each of its elements.
static void gen_copies(Lower *l, const Expr *expr, const View *from, const View *to)
{
    const Type *tuple = type_tuple_of(from->type), *type = from->type;
    for (int i = 0; tuple && i < tuple->n; i++)
        gen_copies(l, expr, view_get(l, from, i), view_get(l, to, i));
    if (tuple || in_place(from, to) || !kernel_begin(l, expr))
        return;
    const Arith *one = arith_const(l->ctx, 1), *size[DIMS_MAX] = {one, one, one};
    int dims = 0;
    for (; type->kind == T_ARRAY && dims < DIMS_MAX; type = type->elem)
        size[dims++] = type->len;
    l->kernel->any_group = false;
    for (int d = 0; d < DIMS_MAX; d++) {
        l->kernel->local[d] = d < dims ? MAX(l->options->local[d], 1) : 1;
        launch_axis(l, l->kernel, d, d < dims ? size[dims - 1 - d] : one,
                    l->kernel->local[d]);
    }
    copy_dim(l, (ItemCopy){from, to, dims});
    kernel_end(l, true);
}

// States ----------------------------------------------------------------------------------

static const View *state_new(Lower *l, const Type *type, const char *name, Buffer **buffer)
{
    int n = 0;
    const View *own = buffers_new(l, type, MEM_GLOBAL, ROLE_TEMP, 0, name);
    whole_buffers(own, buffer, &n);
    return own;
}

// A state in buffers of its own: what a step reads and writes.
static const View *state_buffers(Lower *l, const View *view, const Expr *expr,
                                 Buffer **buffer, bool copy)
{
    int n = 0;
    if (whole_buffers(view, buffer, &n))
        return view;
    const View *own = state_new(l, expr->type, "state", buffer);
    if (copy)
        gen_copies(l, expr, view, own);
    return own;
}

bool is_carried(const Expr *result, const Param *state)
{
    return expr_is_use(expr_behind_gets(result), state);
}

// Where the results of a step go: what it passes on stays in the buffers it is in.
static const View *carried_to(Lower *l, const Expr *result, const Env *env,
                              const Param *state, const View *to)
{
    result = expr_behind_lets(result);
    if (result->kind != E_TUPLE)
        return is_carried(result, state) ? eval(l, result, env) : to;
    const View **item = NEW_ARRAY(l->arena, const View *, result->narg);
    for (int i = 0; i < result->narg; i++)
        item[i] = carried_to(l, result->arg[i], env, state, view_get(l, to, i));
    return view_tuple(l, to->type, item);
}

// Which array of this state each array of the next one is; -1: it is a new one.
typedef struct {
    int part[PLANES_MAX];
} Carried;

static Carried carried_of(const View *to, Buffer *const *from, int n)
{
    Carried carried;
    Buffer *buffer[PLANES_MAX];
    int planes = 0;
    whole_buffers(to, buffer, &planes);
    for (int i = 0; i < n; i++) {
        carried.part[i] = -1;
        for (int k = 0; k < n; k++)
            if (buffer[i] == from[k])
                carried.part[i] = k;
    }
    return carried;
}

// Steps -----------------------------------------------------------------------------------

static Buffer *rebound(Buffer *buffer, Buffer **formal, Buffer **actual, int n)
{
    for (int i = 0; i < n; i++)
        if (buffer == formal[i])
            return actual[i];
    return buffer;
}

// number: what stands for that of the first step, which is `first`.
static void launch_again(Lower *l, const Launches *step, const Arith *number, int64_t first,
                         Buffer **formal, Buffer **actual, int n)
{
    VEC_EACH_REF(const Launch *, from, step) {
        const Kernel *kernel = from->kernel;
        Buffer **buffer = NEW_ARRAY(l->arena, Buffer *, kernel->params.len);
        const Arith **size = NEW_ARRAY(l->arena, const Arith *, kernel->sizes.len);
        for (int k = 0; k < kernel->params.len; k++)
            buffer[k] = rebound(from->buffer[k], formal, actual, n);
        const Arith *now = arith_const(l->ctx, first),
                    **global = NEW_ARRAY(l->arena, const Arith *, 3);
        for (int k = 0; k < kernel->sizes.len; k++)
            size[k] = arith_subst(l->ctx, from->size[k], number, now);
        for (int d = 0; d < 3; d++)
            global[d] = arith_subst(l->ctx, from->global[d], number, now);
        VEC_PUSH(l->arena, &l->launches, ((Launch){kernel, buffer, size, global}));
    }
}

static bool is_taken(const Lower *l, const char *name)
{
    VEC_EACH(const Buffer *, buffer, &l->unit->buffers)
        if (strcmp(buffer->name, name) == 0)
            return true;
    VEC_EACH_REF(const SizeDecl *, size, &l->unit->program->sizes)
        if (strcmp(size->name, name) == 0)
            return true;
    VEC_EACH(const Arith *, step, &l->steps)
        if (strcmp(step->name, name) == 0)
            return true;
    return false;
}

// What stands for the number of a step, from the first to the last that is launched.
static const Arith *number_new(Lower *l, int64_t first, int64_t last, int64_t by)
{
    const char *name = "now"; // no word of a target
    while (is_taken(l, name))
        name = arena_printf(l->arena, "%s_", name);
    return arith_launch(l->ctx, name, first, last, by);
}

// The number of the first of some steps that are launched so often; before: steps that
// were.
static const Arith *step_number(Lower *l, const Expr *loop, int64_t before, int64_t steps,
                                int64_t times)
{
    return is_told_number(loop) ? number_new(l, before, before + steps * (times - 1), steps)
                                : arith_const(l->ctx, 0);
}

// What launches make of steps that change arrays where they are: these levels.
typedef struct {
    int lowest, highest;
} Share;

static void gen_share(Lower *l, const Expr *expr, const Env *env, const Arith *first,
                      Share share, const View *from, const View *to)
{
    for (int i = share.lowest; i <= share.highest; i++) {
        if (l->changes)
            changes_make(l->changes, first, i, share.lowest, share.highest);
        const Arith *number = l->changes ? changes_number(l) : first;
        gen(l, expr->fun->arg[0], step_env(l, env, expr, from, number), to);
    }
}

// The launches of some steps at once, from buffers to buffers; stream: in one kernel.
static Launches step_launches(Lower *l, const Expr *expr, const Env *env, bool stream,
                              int64_t steps, const Arith *first, Share share,
                              const View *from, const View *to)
{
    Launches before = l->launches;
    int outer = l->steps.len;
    l->launches = (Launches){0};
    if (!arith_is_const(first, NULL))
        VEC_PUSH(l->arena, &l->steps, first);
    if (stream)
        gen_stream(l, expr, env, steps, first, from, to);
    else
        gen_share(l, expr, env, first, share, from, to);
    l->steps.len = outer;
    Launches step = l->launches;
    l->launches = before;
    return step;
}

// The changed arrays of a state as they are, in place of those that a step makes.
static const View *changed_view(Lower *l, const View *from, const View *to,
                                const bool *changed, int *n)
{
    const Type *tuple = type_tuple_of(to->type);
    if (!tuple)
        return changed[(*n)++] ? from : to;
    const View **item = NEW_ARRAY(l->arena, const View *, tuple->n);
    for (int i = 0; i < tuple->n; i++)
        item[i] = changed_view(l, view_get(l, from, i), view_get(l, to, i), changed, n);
    return view_tuple(l, to->type, item);
}

// Finds which arrays of a state a step can change where they are: all that it makes, or
// none. None that it passes on as another one.
static bool may_change(Lower *l, const View *const *from, const View *const *to, int n,
                       bool *changed)
{
    bool any = false;
    for (int i = 0; i < n; i++)
        any |= changed[i] = to[i]->type->kind == T_ARRAY && to[i]->buffer->formal &&
                            to[i]->buffer != from[i]->buffer;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            if (to[i]->buffer == from[k]->buffer && i != k)
                return false;
        }
    return any;
}

// What a step changes where it is.
typedef struct {
    Changes *changes; // NULL: nothing
    bool array[PLANES_MAX];
    const View *to; // where its results go then
} ChangedState;

// Looks at a step that changes arrays so; what it lowers is dropped.
static void look_at_step(Lower *l, const Expr *expr, const Env *env, int64_t count,
                         const View *from, const View *to, ChangedState *in_place)
{
    const View *array[PLANES_MAX], *made[PLANES_MAX];
    const int kernels = l->unit->kernels.len, buffers = l->unit->buffers.len;
    int n = 0, listed = 0;
    list_arrays(l, to, made, &n);
    list_arrays(l, from, array, &listed);
    if (l->failed || !may_change(l, array, made, n, in_place->array))
        return;
    in_place->to = changed_view(l, from, to, in_place->array, (listed = 0, &listed));
    for (int i = listed = 0; i < n; i++)
        if (in_place->array[i])
            array[listed++] = array[i];
    const Arith *number = step_number(l, expr, 0, 1, count);
    Changes *around = l->changes, *c = changes_new(l, array, listed, number, false);
    l->changes = c;
    step_launches(l, expr, env, false, 1, number, (Share){0, 0}, from, in_place->to);
    l->changes = around;
    l->unit->kernels.len = kernels;
    l->unit->buffers.len = buffers;
    in_place->changes = changes_found(l, c) && changes_levels(c) <= count ? c : NULL;
}

// How often the steps of a loop are launched, and the launches of each time: as many steps
// as go at once, then as many parts of them as are left, then single ones that are.
enum { KINDS = 5 };
typedef struct {
    int kinds;
    int64_t times[KINDS], steps[KINDS];
    const Arith *number; // of the first step of a launch of the first kind
    Launches launches[KINDS];
    Carried carried[KINDS];
    Share share[KINDS];
} Passes;

static int kind_of(const Passes *passes, int64_t launch)
{
    int kind = 0;
    for (; launch >= passes->times[kind]; kind++)
        launch -= passes->times[kind];
    return kind;
}

// The number of the first step of a launch.
static int64_t first_step(const Passes *passes, int64_t launch)
{
    int64_t first = 0;
    for (int i = 0; i < passes->kinds; launch -= passes->times[i++])
        first += MAX(MIN(launch, passes->times[i]), 0) * passes->steps[i];
    return first;
}

// As many steps as go at once.
static void plan_passes(const Lower *l, Passes *passes, int64_t most, int64_t count)
{
    int64_t part = l->options->relay > 1 && most % l->options->relay == 0
                       ? most / l->options->relay
                       : most;
    *passes = (Passes){.kinds = 3,
                       .steps = {most, count % most / part * part, count % most % part},
                       .times = {count / most}};
    for (int i = 1; i < passes->kinds; i++)
        passes->times[i] = passes->steps[i] > 0;
}

// A level waits for the next step with that below it, which the first steps have not, and
// which is not there after the last ones.
static void plan_levels(Passes *passes, int last, int64_t count)
{
    *passes = (Passes){.kinds = 2 * last + 1};
    for (int i = 0; i < passes->kinds; i++) {
        passes->steps[i] = 1;
        passes->times[i] = i == last ? count - last : 1;
        passes->share[i] = (Share){MAX(i - last, 0), MIN(i, last)};
    }
}

static Passes step_passes(Lower *l, const Expr *expr, const Env *env, int64_t count,
                          const View *from, const View *to, Buffer *const *formal, int n,
                          ChangedState *in_place)
{
    Passes passes;
    const Expr *f = expr->fun;
    int64_t fused = stream_steps(l, expr, env, from, to), before = 0;
    const View *single =
        carried_to(l, f->arg[0], env_bind(l, env, f->params[0], from), f->params[0], to);
    plan_passes(l, &passes, MAX(fused, 1), count);
    if (!fused)
        look_at_step(l, expr, env, count, from, single, in_place);
    Changes *around = l->changes;
    l->changes = in_place->changes;
    const int main = l->changes ? changes_levels(l->changes) - 1 : 0;
    if (l->changes)
        plan_levels(&passes, main, count);
    passes.number = step_number(l, expr, main, passes.steps[main], passes.times[main]);
    for (int i = 0; i < passes.kinds && !l->failed; i++) {
        const int64_t steps = passes.steps[i];
        const View *dest = l->changes ? in_place->to : steps == 1 ? single : to;
        const Arith *first = i == main ? passes.number : arith_const(l->ctx, before);
        passes.carried[i] = carried_of(dest, formal, n);
        if (passes.times[i])
            passes.launches[i] = step_launches(l, expr, env, fused > 0, steps, first,
                                               passes.share[i], from, dest);
        before += passes.times[i] * steps;
    }
    l->changes = around;
    return passes;
}

// The buffers of the states ---------------------------------------------------------------

// An array of a state: the launches from the one that writes it to the last that reads it.
typedef struct {
    int64_t born, last;
    Buffer *buffer;
} Content;

// What a buffer is needed for begins with that launch.
typedef struct {
    Buffer *buffer;
    int64_t busy;
} Room;

typedef struct {
    int64_t count;   // of launches
    int n;           // arrays of a state
    Content **state; // before each launch, and after the last
    VEC(Room) rooms;
} States;

static Content *content_new(Lower *l, int64_t born, Buffer *buffer)
{
    return NEW_OF(l->arena, Content, born, born, buffer);
}

static void follow_contents(Lower *l, States *s, const Passes *passes, Buffer *const *first)
{
    int n = s->n;
    for (int i = 0; i < n; i++)
        s->state[i] = content_new(l, -1, first[i]);
    for (int64_t k = 0; k < s->count; k++) {
        const Carried *carried = &passes->carried[kind_of(passes, k)];
        for (int i = 0; i < n; i++) {
            int part = carried->part[i];
            s->state[k * n + i]->last = k;
            s->state[(k + 1) * n + i] =
                part < 0 ? content_new(l, k, NULL) : s->state[k * n + part];
        }
    }
}

// Values from the last to the first: each goes where what follows it is not there yet.
static void place_content(Lower *l, States *s, Content *content, const View *like)
{
    Buffer *buffer;
    int n = 0;
    whole_buffers(like, &buffer, &n);
    VEC_EACH_REF(Room *, room, &s->rooms)
        if (room->busy > content->last && room->buffer->scalar == buffer->scalar &&
            room->buffer->count == buffer->count) {
            content->buffer = room->buffer;
            room->busy = content->born;
            return;
        }
    state_new(l, like->type, "state", &content->buffer);
    VEC_PUSH(l->arena, &s->rooms, ((Room){content->buffer, content->born}));
}

static void place_contents(Lower *l, States *s, const View *dest, Buffer *const *final)
{
    int n = 0;
    const View *like[PLANES_MAX];
    list_arrays(l, dest, like, &n);
    for (int i = 0; i < n; i++) {
        Content *content = s->state[s->count * n + i];
        bool here = content->born >= 0 && !content->buffer;
        if (here)
            content->buffer = final[i];
        content->last = s->count;
        VEC_PUSH(
            l->arena, &s->rooms,
            ((Room){final[i], content->buffer == final[i] ? content->born : s->count}));
    }
    for (int64_t k = s->count * n - 1; k >= n; k--)
        if (!s->state[k]->buffer)
            place_content(l, s, s->state[k], like[k % n]);
}

// Results that are no new values, or one twice.
static void copy_rest(Lower *l, const States *s, const Expr *expr, const View *dest,
                      Buffer *const *final)
{
    int n = 0;
    const View *to[PLANES_MAX];
    list_arrays(l, dest, to, &n);
    for (int i = 0; i < n; i++) {
        const Buffer *from = s->state[s->count * n + i]->buffer;
        if (from != final[i])
            gen_copies(l, expr, view_mem(l, from, arith_const(l->ctx, 0), to[i]->type),
                       to[i]);
    }
}

// Arrays that are changed where they are begin as copies of those that are somebody else's.
static void begin_changed(Lower *l, const Expr *expr, const ChangedState *in_place,
                          const View *in, const View *dest, Buffer **first,
                          Buffer *const *final)
{
    int n = 0;
    const View *from[PLANES_MAX], *to[PLANES_MAX];
    list_arrays(l, in, from, &n);
    list_arrays(l, dest, to, (n = 0, &n));
    for (int i = 0; in_place->changes && i < n; i++)
        if (in_place->array[i]) {
            gen_copies(l, expr, from[i], to[i]);
            first[i] = final[i];
        }
}

static void launch_all(Lower *l, const States *s, const Passes *passes, Buffer **formal)
{
    Buffer *actual[2 * PLANES_MAX];
    for (int64_t k = 0; k < s->count && !l->failed; k++) {
        for (int i = 0; i < 2 * s->n; i++)
            actual[i] = s->state[k * s->n + i]->buffer;
        launch_again(l, &passes->launches[kind_of(passes, k)], passes->number,
                     first_step(passes, k), formal, actual, 2 * s->n);
    }
}

// One whose counters are no states, but may be results, if they have a place.
static const View *gen_counting(Lower *l, const Expr *expr, const LoopCounters *c,
                                const Env *env, const View *out)
{
    const View *rest = gen_iterate(l, c->loop, env, counted_rest(l, c, out));
    const View *result = counted_result(l, c, env, rest);
    for (int i = 0; i < c->n && !l->failed; i++)
        if (c->value[i] && view_get(l, out, i))
            gen_copies(l, expr, view_get(l, result, i), view_get(l, out, i));
    return result;
}

bool gen_component(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    if (!is_loop_result(l->ir, expr))
        return false;
    const Expr *loop = expr->arg[0];
    const View **item = NEW_ARRAY(l->arena, const View *, loop->type->n);
    item[expr->index] = out;
    gen_iterate(l, loop, env, place_rest(l, loop, item));
    return true;
}

const View *gen_iterate(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    int64_t steps;
    LoopCounters counting;
    if (find_counters(l->ir, expr, &counting))
        return gen_counting(l, expr, &counting, env, out);
    if (!arith_is_const(expr->num[0], &steps))
        return lower_fail(l, expr->span, "L021", "iterate needs a constant count");
    if (steps > LAUNCHES_MAX)
        return lower_fail(l, expr->span, "L021",
                          "iterate has %lld steps, and %d at most can be launched",
                          (long long)steps, LAUNCHES_MAX);
    if (parts_of(expr->type) > PLANES_MAX)
        return lower_fail(l, expr->span, "L030", "iterate has more than 1024 arrays");
    const View *in = eval(l, expr->arg[0], env);
    if (steps == 0 || l->failed) {
        gen_copies(l, expr, in, out);
        return out;
    }
    changes_hide(l);
    Buffer *first[PLANES_MAX], *final[PLANES_MAX], *formal[2 * PLANES_MAX];
    const bool is_ours = state_buffers(l, in, expr, first, true) != in;
    const View *dest = state_buffers(l, out, expr, final, false);
    int n = 0;
    whole_buffers(dest, final, &n);
    const View *from = state_new(l, expr->type, "from", formal);
    const View *to = state_new(l, expr->type, "to", formal + n);
    for (int i = 0; i < 2 * n; i++)
        formal[i]->formal = true;
    ChangedState in_place = {0};
    Passes passes = step_passes(l, expr, env, steps, from, to, formal, n, &in_place);
    if (!is_ours)
        begin_changed(l, expr, &in_place, in, dest, first, final);
    States s = {.n = n};
    for (int i = 0; i < passes.kinds; i++)
        s.count += passes.times[i];
    s.state = NEW_ARRAY(l->arena, Content *, (s.count + 1) * n);
    follow_contents(l, &s, &passes, first);
    place_contents(l, &s, dest, final);
    launch_all(l, &s, &passes, formal);
    copy_rest(l, &s, expr, dest, final);
    if (dest != out)
        gen_copies(l, expr, dest, out);
    return out;
}

// Prefixes that are arrays ----------------------------------------------------------------

void gen_row(Lower *l, const RowSteps *s, const View *before, const Arith *number)
{
    const Expr *f = s->scan->fun;
    const View *arg[] = {before, view_elem(l, s->in, number)};
    const Env *env = s->env;
    for (int i = 0; i < COUNTOF(arg); i++)
        env = env_bind_named(l, env, f->params[i], arg[i], f->arg[0]);
    gen(l, f->arg[0], env, view_elem(l, s->out, number));
}

// The launches of all rows but the first.
static void gen_other_rows(Lower *l, const RowSteps *s, int64_t rows)
{
    const Arith *number = number_new(l, 1, rows - 1, 1);
    const Launches first = l->launches;
    const int outer = l->steps.len;
    l->launches = (Launches){0};
    if (!arith_is_const(number, NULL))
        VEC_PUSH(l->arena, &l->steps, number);
    gen_row(l, s, view_elem(l, s->out, arith_addc(l->ctx, number, -1)), number);
    const Launches step = l->launches;
    l->steps.len = outer;
    l->launches = first;
    for (int64_t k = 1; k < rows && !l->failed; k++)
        launch_again(l, &step, number, k, NULL, NULL, 0);
}

// Can what is written there be read there, in whatever layout?
static bool reads_back(const View *out)
{
    while (out->kind == V_LAYOUT)
        out = out->src;
    return out->kind == V_MEM && out->buffer->space == MEM_GLOBAL && !out->buffer->value;
}

// Each step reads the row before its own where that was written.
void gen_row_steps(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    changes_hide(l);
    int64_t rows;
    Buffer *all[PLANES_MAX];
    const View *dest = reads_back(out) ? out : state_buffers(l, out, expr, all, false);
    const RowSteps s = {expr, env, eval(l, expr->arg[1], env), dest};
    if (l->failed || !arith_is_const(expr->type->len, &rows))
        return;
    gen_row(l, &s, eval(l, expr->arg[0], env), arith_const(l->ctx, 0));
    if (rows > 1)
        gen_other_rows(l, &s, rows);
    if (dest != out)
        gen_copies(l, expr, dest, out);
}
