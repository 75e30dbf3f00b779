// SPDX-License-Identifier: Apache-2.0
//
// Statements and whole kernels. With work-items, a loop over threads is the declaration of
// an id, with an `if` or a strided loop where the kernel says so. Without them every such
// loop is a plain loop, the outermost one shared among OpenMP threads, and local buffers
// live in the body of the innermost loop over work-groups.

#include "emit/print.h"

#include <limits.h>

static void put_block(Printer *p, const Block *block);

// Questions about statements ----------------------------------------------------------

static bool is_group_loop(const Stm *stm, const void *of)
{
    return stm->kind == ST_FOR && stm->loop == LOOP_WRG;
}

static bool is_load_of(const KExpr *e, const void *buffer)
{
    return (e->kind == K_LOAD || e->kind == K_TILE) && e->buffer == buffer;
}

static bool uses(const Stm *stm, const void *buffer)
{
    return stm_stores(stm, buffer) || kexpr_any(stm->value, is_load_of, buffer);
}

// Declarations ------------------------------------------------------------------------

static void put_memory_type(Printer *p, Scalar scalar, const char *doubtful)
{
    if (p->target->doubts)
        put(p, "fw_%s%s", doubtful, scalar_info[scalar].name);
    else
        put(p, "%s", scalar == S_BOOL ? p->target->byte : scalar_text(p, scalar));
}

// To a multiple of how many bytes an array has to lie; 0: as the compiler likes.
static int alignment(const Target *target, const Buffer *buffer)
{
    int64_t count;
    int bytes = scalar_info[buffer->scalar].bytes;
    bool is_small =
        arith_is_const(buffer->count, &count) && count * bytes < target->align_least;
    int vector = buffer->vector > 1 && !target->unaligned[0] ? buffer->vector * bytes : 0;
    return MAX(vector, is_small ? 0 : target->align_least);
}

static void put_array(Printer *p, const char *space, const Buffer *buffer)
{
    int bytes = alignment(p->target, buffer);
    put(p, "%s", space);
    if (bytes > 0 && p->target->align)
        put(p, "%s%d%s", p->target->align, bytes, p->target->align_close);
    put_memory_type(p, buffer->scalar, buffer->space == MEM_PRIVATE ? "sum_" : "memory_");
    Buffer plain = *buffer;
    plain.places = NULL; // which are those of elements
    put_form(p, " %e;\n", &plain, buffer->count);
}

enum { LOCAL_ALIGN = 1024 };

static int64_t most_bytes(const Target *target, const Buffer *buffer)
{
    int64_t count;
    if (!arith_is_const(buffer->count, &count))
        BUG("local memory of a size that is not known");
    return count * target_bytes(target, buffer->scalar);
}

// The largest buffer of which sizes may ask for less: it lies behind all others, so that
// launches ask for no more. NULL: there is none.
static const Buffer *open_local(const Target *target, const Kernel *kernel)
{
    const Buffer *open = NULL;
    VEC_EACH(const Buffer *, buffer, &kernel->locals)
        if (buffer->open &&
            (!open || most_bytes(target, buffer) > most_bytes(target, open)))
            open = buffer;
    return open;
}

// Bytes from the start of all local memory to a buffer's, where it is asked for as one.
static int64_t local_offset(const Target *target, const Kernel *kernel,
                            const Buffer *buffer)
{
    const Buffer *open = open_local(target, kernel);
    int64_t offset = 0;
    VEC_EACH(const Buffer *, before, &kernel->locals) {
        if (before == buffer && before != open)
            break;
        offset += before == open ? 0 : most_bytes(target, before);
        offset = (offset + LOCAL_ALIGN - 1) / LOCAL_ALIGN * LOCAL_ALIGN;
    }
    return offset;
}

int64_t emit_local_most(const Target *target, const Kernel *kernel)
{
    const Buffer *open = open_local(target, kernel);
    int64_t bytes = local_offset(target, kernel, open);
    bytes += open ? most_bytes(target, open) : 0;
    return target->declared_bytes && (open || bytes > target->declared_bytes) ? bytes : 0;
}

const Arith *emit_local_bytes(ArithCtx *ctx, const Target *target, const Kernel *kernel)
{
    const Buffer *open = open_local(target, kernel);
    int64_t most = emit_local_most(target, kernel);
    if (!open || !most)
        return arith_const(ctx, most);
    const Arith *bytes = arith_mulc(ctx, open->open, target_bytes(target, open->scalar));
    return arith_addc(ctx, bytes, local_offset(target, kernel, open));
}

// A part of the local memory that the launch asks for.
static void put_part(Printer *p, const Buffer *buffer)
{
    put_memory_type(p, buffer->scalar, "memory_");
    put_form(p, " *const %n = (", buffer->name);
    put_memory_type(p, buffer->scalar, "memory_");
    put_form(p, " *)(fw_local + %l);\n", local_offset(p->target, p->kernel, buffer));
}

// Does a block use a buffer outside of the loops over groups that it contains?
static bool uses_here(const Block *block, const Buffer *buffer)
{
    VEC_EACH(const Stm *, stm, block)
        if (!is_group_loop(stm, NULL) &&
            (uses(stm, buffer) || uses_here(&stm->body, buffer) ||
             uses_here(&stm->other, buffer)))
            return true;
    return false;
}

// The local buffers that are declared at the start of block: all of the kernel's, or, if
// its groups are iterations of loops, those that an iteration of the innermost loop needs.
static void put_locals(Printer *p, const Block *block)
{
    bool any = false, asked = emit_local_most(p->target, p->kernel) > 0;
    if (asked)
        put_line(p, "extern %s%s%d%s%s fw_local[];", p->target->local, p->target->align,
                 LOCAL_ALIGN, p->target->align_close, p->target->byte);
    VEC_EACH(const Buffer *, buffer, &p->kernel->locals) {
        if (list_has(p->arrays.at, p->arrays.len, buffer) ||
            !(p->target->threads ? block_any(block, uses, buffer)
                                 : uses_here(block, buffer)))
            continue;
        VEC_PUSH(p->arena, &p->arrays, buffer);
        if (asked)
            put_part(p, buffer);
        else
            put_array(p, p->target->local, buffer);
        any = true;
    }
    if (any)
        buf_putc(p->out, '\n');
}

static void put_declaration(Printer *p, const Stm *stm)
{
    const Type *type = stm->var->type;
    put(p, stm->var->is_const ? "const " : "");
    if (p->target->doubts && stm->var->is_const && stm->value)
        put(p, "auto"); // what is known of the value, too
    else if (p->target->doubts && type->kind == T_SCALAR)
        put(p, "fw_%s_%s", stm->var->folds ? "fold" : "sum",
            scalar_info[type->scalar].name);
    else if (p->wide_sums && !stm->var->is_const && type->kind == T_SCALAR &&
             type->scalar == S_FLOAT)
        put(p, "double");
    else
        put_type(p, type);
    put_form(p, " %n", stm->var->name);
    if (stm->value)
        put_form(p, " = %v", stm->value);
    put_line(p, ";");
}

// Whether `to += x` says what `to = to + x` does; a bf16 is no number to the target.
static bool may_accumulate(const Printer *p, const KExpr *e)
{
    return e->kind == K_OP && e->op == OP_ADD && e->type->scalar != S_BF16 &&
           !value_wraps(p, e);
}

// `v += x` where v + x is assigned to v.
static void put_assignment(Printer *p, const Stm *stm)
{
    const KExpr *e = stm->value;
    bool adds =
        may_accumulate(p, e) && e->arg[0]->kind == K_VAR && e->arg[0]->var == stm->var;
    put_form(p, "%n %s %v;\n", stm->var->name, adds ? "+=" : "=", adds ? e->arg[1] : e);
}

// Loops -------------------------------------------------------------------------------

static void put_braced(Printer *p, const Block *block)
{
    int ids = p->ids.len, ints = p->ints.len, computed = p->computed.len;
    p->indent++;
    put_block(p, block);
    p->indent--;
    p->ids.len = ids;
    p->ints.len = ints;
    p->computed.len = computed;
}

// The place of an item in its warp of 4 x 8 items, found from its number in the group;
// warps go along x first.
static void put_lane_id(Printer *p, int dim)
{
    const Target *t = p->target;
    const int64_t *local = p->kernel->local;
    const char *x = t->id[LOOP_LCL], *close = t->id_close;
    if (dim == 0)
        put(p, "%s%c%s %% 4 + (%s%c%s + %lld*%s%c%s) / 32 %% %lld * 4", x, t->dim[0], close,
            x, t->dim[0], close, (long long)local[0], x, t->dim[1], close,
            (long long)local[0] / 4);
    else
        put(p, "(%s%c%s + %lld*%s%c%s) / 4 %% 8 + (%s%c%s + %lld*%s%c%s) / %lld * 8", x,
            t->dim[0], close, (long long)local[0], x, t->dim[1], close, x, t->dim[0], close,
            (long long)local[0], x, t->dim[1], close, (long long)local[0] * 8);
}

static void put_group_number(Printer *p, int64_t across)
{
    const Target *t = p->target;
    put(p, "(%s%c%s + %lld*%s%c%s)", t->id[LOOP_WRG], t->dim[0], t->id_close,
        (long long)across, t->id[LOOP_WRG], t->dim[1], t->id_close);
}

// The place of a group where groups are numbered in bands of so many rows: those of a band
// run at about the same time, and find in the cache what each other's rows and columns
// need.
static bool put_band_id(Printer *p, int dim)
{
    int64_t groups[2], band = p->kernel->band;
    for (int d = 0; d < 2; d++) {
        int64_t items = 0;
        const Arith *global = p->kernel->global[d];
        if (dim > 1 || !band || !global || !arith_is_const(global, &items))
            return false;
        groups[d] = items / MAX(p->kernel->local[d], 1);
    }
    int64_t all = band * groups[0];
    if (groups[0] < 2 || groups[1] < 2 || all > INT_MAX / 2)
        return false;
    if (dim == 1) {
        put_group_number(p, groups[0]);
        put(p, " / %lld * %lld + ", (long long)all, (long long)band);
    }
    put_group_number(p, groups[0]);
    put(p, " %% %lld %s ", (long long)all, dim == 1 ? "%" : "/");
    if (groups[1] % band == 0) {
        put(p, "%lld", (long long)band);
        return true;
    }
    // OpenCL has no least of an int and a number of a group.
    put(p, "min(%lld, %lld - (int)", (long long)band, (long long)groups[1]);
    put_group_number(p, groups[0]);
    put(p, " / %lld * %lld)", (long long)all, (long long)band);
    return true;
}

static void put_plain_id(Printer *p, LoopKind loop, int dim)
{
    const Target *t = p->target;
    put(p, "%s%c%s", t->id[loop], t->dim[dim], t->id_close);
}

// The id of this work-item that a loop over threads starts at. Where the language has no
// global id, it is made of the group's and the local one; such groups have no bands.
static void put_id_value(Printer *p, LoopKind loop, int dim)
{
    const Target *t = p->target;
    if (loop == LOOP_LCL && dim < 2 && p->kernel->matrix && p->kernel->local[0] > 4) {
        put_lane_id(p, dim);
        return;
    }
    if (loop == LOOP_WRG && put_band_id(p, dim))
        return;
    if (t->id[loop]) {
        put_plain_id(p, loop, dim);
        return;
    }
    int64_t local = p->kernel->any_group ? 0 : p->kernel->local[dim];
    if (local == 0)
        put(p, "(%s)%s%c*", index_type(p), t->group_size, t->dim[dim]);
    else if (local != 1)
        put(p, "%lld%s*", (long long)local, p->kernel->wide ? "L" : "");
    put_plain_id(p, LOOP_WRG, dim);
    if (local != 1) {
        put(p, " + ");
        put_id_value(p, LOOP_LCL, dim);
    }
}

static void put_loop_head(Printer *p, const Stm *stm, bool from_id)
{
    put_form(p, "for (%s %i = %s", index_type(p), stm->iter, from_id ? "" : "0");
    if (from_id)
        put_id_value(p, stm->loop, stm->dim);
    put_form(p, "; %i < %i", stm->iter, stm->extent);
    if (stm->value)
        put_form(p, " && %v", stm->value);
    put_form(p, "; %i", stm->iter);
}

// What an iteration decides in doubt ends with it, unless it changes a variable for the
// next one.
static void put_scope(Printer *p, const Stm *loop)
{
    if (!p->decides || block_any(&loop->body, stm_carries, loop))
        return;
    p->indent++;
    put_line(p, "fw_scope fw_here;");
    p->indent--;
}

static void put_iteration(Printer *p, const Stm *loop)
{
    put_scope(p, loop);
    put_braced(p, &loop->body);
    put_line(p, "}");
}

// Iterations as lanes, each of which has its own of the variables that they carry; where
// the target cannot say so, their order does not matter.
static void put_simd(Printer *p, const Stm *loop)
{
    put_form(p, "%s", p->target->simd);
    VEC_EACH(const Stm *, stm, &loop->body) {
        if (p->target->regroups || !stm_carries(stm, loop))
            continue;
        put_form(p, " reduction(%s:%s)", op_info[stm_joins(stm, loop)->op].text,
                 stm->var->name);
    }
    put_line(p, "%s", "");
}

static void put_plain_loop(Printer *p, const Stm *stm)
{
    const int most = p->target->unroll_most;
    const int copies = most == 1 && stm->loop == LOOP_SEQ ? 1 : stm->unroll;
    if (stm->rolled && p->target->rolled)
        put_line(p, "%s", p->target->rolled);
    else if (copies && p->target->unroll && (!most || copies <= most))
        put_line(p, "%s %d", p->target->unroll, copies);
    if (stm->simd && p->target->simd)
        put_simd(p, stm);
    put_loop_head(p, stm, false);
    put_line(p, "++) {");
    if (stm->simd && p->target->regroups && block_any(&stm->body, stm_carries, stm)) {
        p->indent++;
        put_line(p, "%s", p->target->regroups);
        p->indent--;
    }
    put_iteration(p, stm);
}

// Where all threads have as many iterations these are counted, so that a compiler knows how
// many there are and may begin the loads of several at once.
static bool put_counted_loop(Printer *p, const Stm *stm)
{
    int64_t extent, threads;
    if (!arith_is_const(stm->extent, &extent) || !arith_is_const(stm->threads, &threads) ||
        extent % threads != 0)
        return false;
    put_line(p, "for (%s fw_k = 0; fw_k < %lld; fw_k++) {", index_type(p),
             (long long)(extent / threads));
    p->indent++;
    put_form(p, "const %s %i = %l*fw_k + ", index_type(p), stm->iter, threads);
    put_id_value(p, stm->loop, stm->dim);
    put_line(p, ";");
    p->indent--;
    put_iteration(p, stm);
    return true;
}

static void put_strided_loop(Printer *p, const Stm *stm)
{
    if (put_counted_loop(p, stm))
        return;
    put_loop_head(p, stm, true);
    put_form(p, " += %i) {\n", stm->threads);
    put_iteration(p, stm);
}

// A loop of the same dimension, extent and depth as an earlier one has the same variable.
static void put_id(Printer *p, const Stm *stm)
{
    if (list_has(p->ids.at, p->ids.len, stm->iter))
        return;
    put_form(p, "const %s %i = ", index_type(p), stm->iter);
    put_id_value(p, stm->loop, stm->dim);
    put_line(p, ";");
    VEC_PUSH(p->arena, &p->ids, stm->iter);
}

enum { NEST_MAX = 6 };

// The loops over threads that stm and its only children are, as long as they need no loop.
static int nest_of(const Stm *stm, const Stm *nest[NEST_MAX])
{
    int n = 0;
    while (n < NEST_MAX && stm->kind == ST_FOR && stm->loop != LOOP_SEQ &&
           stm->form != FORM_LOOP) {
        nest[n++] = stm;
        if (stm->body.len != 1)
            break;
        stm = stm->body.at[0];
    }
    return n;
}

static void put_id_loops(Printer *p, const Stm *stm)
{
    const Stm *nest[NEST_MAX];
    int n = nest_of(stm, nest);
    bool guarded = false;
    for (int i = 0; i < n; i++)
        put_id(p, nest[i]);
    for (int i = 0; i < n; i++) {
        if (nest[i]->form != FORM_GUARD)
            continue;
        put_form(p, "%s%i < %i", guarded ? " && " : "if (", nest[i]->iter, nest[i]->extent);
        guarded = true;
    }
    if (!guarded) {
        put_block(p, &nest[n - 1]->body);
        return;
    }
    put_line(p, ") {");
    put_braced(p, &nest[n - 1]->body);
    put_line(p, "}");
}

// Are two loops over threads to be shared out as one? Compilers make no vectors of such a
// loop (gcc 12, a 5-point stencil: 2.5 against 0.8 ns a point), so not where the inner one
// is the innermost and the outer one has enough for all processors.
enum { SHARES_ENOUGH = 64 };

static bool shared_as_one(const Stm *outer)
{
    const Stm *inner = outer->body.len == 1 ? outer->body.at[0] : NULL;
    int64_t n = 0;
    if (!inner || !stm_is_parallel(inner, NULL) ||
        arith_mentions(inner->extent, outer->iter))
        return false;
    const Stm *below = inner->body.len == 1 ? inner->body.at[0] : NULL;
    bool innermost = inner->loop == LOOP_GLB && !(below && stm_is_parallel(below, NULL));
    return !innermost || (arith_is_const(outer->extent, &n) && n < SHARES_ENOUGH);
}

static void count_node(const KExpr *e, void *count)
{
    enum { CALL = 1000 }; // of a function of the program, which may have loops
    *(double *)count += e->kind == K_CALL ? CALL : 1;
}

// How many operations a block executes, at most.
static double operations(const Block *block)
{
    double n = 0;
    VEC_EACH(const Stm *, stm, block) {
        double own = 1;
        kexpr_each(stm->value, count_node, &own);
        own += operations(&stm->body) + operations(&stm->other);
        n += stm->kind == ST_FOR ? own * (double)arith_most(stm->extent) : own;
    }
    return n;
}

// Threads are worth waking for so many: about 50 us. Those of a busy machine are not awake
// for milliseconds, in each launch.
static bool threads_pay(const Printer *p, const Stm *loop)
{
    static const double LEAST = 1e5, DOUBTS = 20; // DOUBTS: of a number with a bound
    return operations(&loop->body) * (double)arith_most(loop->extent) *
               (p->target->doubts ? DOUBTS : 1) >=
           LEAST;
}

// The outermost loop over threads of target c, its local buffers, and what is inside.
static void put_omp_loop(Printer *p, const Stm *stm)
{
    bool outermost = stm_is_parallel(stm, NULL) && !p->parallel && threads_pay(p, stm);
    bool as_one = outermost && shared_as_one(stm);
    bool simd = stm->simd && stm != p->joined;
    if (outermost || simd)
        put_line(p, "#pragma omp%s%s%s", outermost ? " parallel for" : "",
                 simd ? " simd" : "", as_one ? " collapse(2)" : "");
    p->parallel |= outermost;
    int arrays = p->arrays.len;
    if (as_one) // no pragma may stand between the two
        p->joined = stm->body.at[0];
    put_loop_head(p, stm, false);
    put_line(p, "++) {");
    if (!as_one) // nothing may stand between loops that are one
        put_scope(p, stm);
    p->indent++;
    if (stm->loop == LOOP_WRG)
        put_locals(p, &stm->body);
    p->indent--;
    put_braced(p, &stm->body);
    put_line(p, "}");
    p->arrays.len = arrays;
    p->parallel = p->parallel && !outermost;
}

static void put_for(Printer *p, const Stm *stm)
{
    if (stm->loop == LOOP_SEQ)
        put_plain_loop(p, stm);
    else if (!p->target->threads)
        put_omp_loop(p, stm);
    else if (stm->form == FORM_LOOP)
        put_strided_loop(p, stm);
    else
        put_id_loops(p, stm);
}

// Other statements --------------------------------------------------------------------

static void put_if(Printer *p, const Stm *stm)
{
    put_form(p, "if (%v) {\n", stm->value);
    put_braced(p, &stm->body);
    if (stm->other.len == 1 && stm->other.at[0]->kind == ST_IF) {
        put(p, "} else ");
        put_if(p, stm->other.at[0]);
        return;
    }
    if (stm->other.len) {
        put_line(p, "} else {");
        put_braced(p, &stm->other);
    }
    put_line(p, "}");
}

static void put_scalar_store(Printer *p, const Stm *stm, int lane)
{
    const KExpr *e = stm->value, *to = may_accumulate(p, e) ? e->arg[0] : e;
    bool adds = to != e && to->kind == K_LOAD && to->buffer == stm->buffer &&
                to->arith == stm->index && lane < 0;
    p->lane = lane;
    put_form(p, "%e %s %v;\n", stm->buffer, arith_addc(p->ctx, stm->index, MAX(lane, 0)),
             adds ? "+=" : "=", adds ? e->arg[1] : e);
    p->lane = -1;
}

static void put_lane_stores(Printer *p, const Stm *stm)
{
    for (int i = 0; i < stm->value->type->width; i++)
        put_scalar_store(p, stm, i);
}

static void put_vector_store(Printer *p, const Stm *stm)
{
    const Type *type = stm->value->type;
    if (put_vector_element(p, stm->buffer, stm->index, type, false)) {
        put_form(p, " = %v;\n", stm->value);
        return;
    }
    if (p->target->vectors == VECTORS_STRUCT) {
        put_lane_stores(p, stm);
        return;
    }
    put_form(p, "vstore%d(%v, 0, &%e);\n", type->width, stm->value, stm->buffer,
             stm->index);
}

static void put_pairs(Printer *p, const Stm *stm)
{
    put_form(p, "fw_store_pairs<%d>(&%e", stm->apart, stm->buffer, stm->index);
    for (int i = 0; i < stm->value->n; i++)
        put_form(p, ", %v", stm->value->arg[i]);
    put_line(p, ");");
}

static void put_copy(Printer *p, const Stm *stm)
{
    const KExpr *from = stm->value;
    int width = from->type->kind == T_VECTOR ? from->type->width : 1;
    put_form(p, "fw_copy<%d>(&%e, &%e);\n", width * scalar_info[from->buffer->scalar].bytes,
             stm->buffer, stm->index, from->buffer, from->arith);
}

static void put_store(Printer *p, const Stm *stm)
{
    const Type *type = stm->value->type;
    if (stm->atomic && p->target->threads)
        put_update(p, stm);
    else if (stm->async)
        put_copy(p, stm);
    else if (stm->apart)
        put_pairs(p, stm);
    else if (type->kind == T_SCALAR)
        put_scalar_store(p, stm, -1);
    else if (type->scalar != S_BOOL)
        put_vector_store(p, stm);
    else // there are no vectors of bool in memory
        put_lane_stores(p, stm);
}

static void put_wait(Printer *p, const Stm *stm)
{
    put(p, stm->buffer ? "fw_together_wait<%d>(" : "fw_wait<%d>(", stm->keep);
    if (stm->buffer)
        put_name(p, stm->buffer->name);
    put_line(p, ");");
}

// The shape goes into the name, so that the function's loops are written out.
static void put_matrix(Printer *p, const Stm *stm)
{
    const Fragments *f = stm->value->fragments;
    const bool is_short = scalar_info[stm->value->arg[0]->buffer->scalar].bytes == 2;
    if (f->together)
        put(p, "fw_multiply_together<%d, %d, %s, %s, %lld", f->groups[0], f->groups[1],
            f->turned[0] ? "true" : "false", f->turned[1] ? "true" : "false",
            (long long)(p->kernel->local[0] * p->kernel->local[1] / 128));
    else
        put(p, "fw_multiply%s<%d, %d, %lld", is_short ? "_short" : "", f->groups[0],
            f->groups[1], (long long)f->step);
    for (int side = 0; side < 2 && !f->together; side++)
        put(p, ", %lld, %lld, %s", (long long)f->apart[side], (long long)f->row[side],
            f->turned[side] ? "true" : "false");
    put_form(p, ">(&%e, %v, %v);\n", stm->buffer, stm->index, stm->value->arg[0],
             stm->value->arg[1]);
    if (f->together && !stm->async)
        put_wait(p, &(Stm){.buffer = stm->buffer});
}

static void put_barrier(Printer *p, const Stm *stm)
{
    if (!p->target->threads)
        return;
    const char *fence = stm->fence_local && stm->fence_global
                            ? "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"
                        : stm->fence_global ? "CLK_GLOBAL_MEM_FENCE"
                                            : "CLK_LOCAL_MEM_FENCE";
    if (p->kernel->group) // stores that other than items read
        put_line(p, "fw_fence();");
    if (p->target->barrier)
        put_line(p, "%s;",
                 stm->warp && p->target->warp_barrier ? p->target->warp_barrier
                                                      : p->target->barrier);
    else
        put_line(p, "barrier(%s);", fence);
}

static void put_stm(Printer *p, const Stm *stm)
{
    switch (stm->kind) {
    case ST_DECL: put_declaration(p, stm); return;
    case ST_ASSIGN: put_assignment(p, stm); return;
    case ST_STORE: put_store(p, stm); return;
    case ST_MATRIX: put_matrix(p, stm); return;
    case ST_ARRAY: put_array(p, "", stm->buffer); return;
    case ST_INT:
        put_form(p, "const %s %i = ", index_type(p), stm->iter);
        if (!stm->value) {
            put_index(p, stm->index, PREC_ANY);
            VEC_PUSH(p->arena, &p->ints, stm);
        } else {
            VEC_PUSH(p->arena, &p->computed, stm->iter);
            if (p->target->doubts)
                put(p, "(%s)", index_type(p));
            put_value(p, stm->value, p->target->doubts ? PREC_UNARY : PREC_ANY);
        }
        put_line(p, ";");
        return;
    case ST_FOR: put_for(p, stm); return;
    case ST_IF: put_if(p, stm); return;
    case ST_BARRIER: put_barrier(p, stm); return;
    case ST_PUBLISH:
        put_form(p, "fw_publish_%s(&%e, %v);\n", scalar_info[stm->value->type->scalar].name,
                 stm->buffer, stm->index, stm->value);
        return;
    case ST_COMMIT: put_line(p, "fw_commit();"); return;
    case ST_WAIT: put_wait(p, stm); return;
    }
    BUG("statement of kind %d", stm->kind);
}

// A key in doubt stands for several places: a loop over these, around the update there.
static void put_places(Printer *p, const Stm *key, const Stm *update)
{
    const Arith *at = key->iter;
    VEC_PUSH(p->arena, &p->computed, at);
    put_form(p, "for (fw_keys %i_of(", at);
    put_value(p, key->value, PREC_ANY);
    put_form(p, ", %i); %i_of.more(); %i_of.next()) {\n", key->extent, at, at);
    p->indent++;
    put_form(p, "const %s %i = (%s)%i_of.at();\n", index_type(p), at, index_type(p), at);
    put_stm(p, update);
    p->indent--;
    put_line(p, "}");
}

static void put_block(Printer *p, const Block *block)
{
    for (int i = 0; i < block->len; i++) {
        const Stm *stm = block->at[i], *next = i + 1 < block->len ? block->at[i + 1] : NULL;
        const bool key = p->target->doubts && stm->kind == ST_INT && stm->extent;
        if (key && next && next->kind == ST_IF)
            put_places(p, stm, block->at[++i]);
        else
            put_stm(p, stm);
    }
}

// Kernels -----------------------------------------------------------------------------

static void put_parameters(Printer *p, const Kernel *kernel)
{
    for (int i = 0; i < kernel->params.len; i++) {
        const Buffer *buffer = kernel->params.at[i];
        bool stored = block_any(&kernel->body, stm_stores, buffer);
        put(p, i ? ", " : "");
        if (by_value(p, buffer)) {
            put(p, "const ");
            put_memory_type(p, buffer->scalar, "");
            put(p, " ");
        } else if (p->target->image && kernel_reads_image(kernel, buffer)) {
            put(p, "%s", p->target->image);
        } else {
            bool plain = buffer->role == ROLE_INPUT && !buffer->formal;
            put(p, "%s%s", p->target->global, stored ? "" : "const ");
            put_memory_type(p, buffer->scalar, plain ? "read_" : "memory_");
            put(p, " *%s ", p->target->restricted);
        }
        put_name(p, buffer->name);
    }
    for (int i = 0; i < kernel->sizes.len; i++) {
        put(p, kernel->params.len + i ? ", const int " : "const int ");
        put_index(p, kernel->sizes.at[i], PREC_ANY);
    }
}

void put_opencl_start(Printer *p, const Kernel *kernel)
{
    const int64_t *local = kernel->local;
    if (kernel->any_group)
        put_line(p, "kernel");
    else
        put_line(p, "kernel __attribute__((reqd_work_group_size(%lld, %lld, %lld)))",
                 (long long)local[0], (long long)local[1], (long long)local[2]);
    put(p, "void ");
}

void put_cuda_start(Printer *p, const Kernel *kernel)
{
    const int64_t *local = kernel->local;
    int64_t items = local[0] * local[1] * local[2];
    put(p, "extern \"C\" __global__ void");
    if (kernel->any_group) {
        put_line(p, "%s", "");
        return;
    }
    put(p, " __launch_bounds__(%lld", (long long)items);
    if (kernel->resident && p->target->resident)
        put(p, ", %d", kernel->resident);
    put_line(p, ")");
}

void put_c_start(Printer *p, const Kernel *kernel)
{
    put(p, "static void ");
}

// The one signature by which the host calls every kernel of target c.
static void put_entry(Printer *p, const Kernel *kernel)
{
    buf_putc(p->out, '\n');
    put_line(p, "%svoid %s_entry(void *const *arg)",
             p->target->doubts ? "extern \"C\" " : "", kernel->name);
    put_line(p, "{");
    p->indent = 1;
    put(p, "%s(", kernel->name);
    int n = kernel->params.len;
    for (int i = 0; i < n; i++) {
        const Buffer *buffer = kernel->params.at[i];
        put(p, i ? ", " : "");
        if (by_value(p, buffer)) {
            put(p, "*(const ");
            put_memory_type(p, buffer->scalar, "");
            put(p, " *)arg[%d]", i);
        } else
            put(p, p->target->doubts ? "fw_argument{arg[%d]}" : "arg[%d]", i);
    }
    for (int i = 0; i < kernel->sizes.len; i++)
        put(p, "%s*(const int *)arg[%d]", n + i ? ", " : "", n + i);
    put_line(p, ");");
    p->indent = 0;
    put_line(p, "}");
}

void put_kernel(Printer *p, const Kernel *kernel)
{
    p->kernel = kernel;
    p->target->put_start(p, kernel);
    put(p, "%s(", kernel->name);
    put_parameters(p, kernel);
    put_line(p, kernel->params.len + kernel->sizes.len ? ")" : "void)");
    put_line(p, "{");
    p->indent = 1;
    if (p->target->doubts && p->target->threads)
        put_line(p, "fw_unsure = false, fw_maybe = 0;");
    if (p->follows)
        put_line(p, "%s", p->target->follow);
    p->arrays.len = 0;
    put_locals(p, &kernel->body);
    put_block(p, &kernel->body);
    p->indent = 0;
    put_line(p, "}");
    if (!p->target->threads)
        put_entry(p, kernel);
}
