// SPDX-License-Identifier: Apache-2.0
//
// Targets, and whole units of text.

#include "emit/print.h"

#include <string.h>

static const Target targets[] = {
#define TARGET(id, ...) {__VA_ARGS__},
#include "emit/targets.def"
#undef TARGET
};

const Target *target_find(const char *name)
{
    for (int i = 0; target_at(i); i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

const Target *target_reference(const char *of)
{
    for (int i = 0; i < COUNTOF(targets); i++)
        if (targets[i].doubts && !strcmp(targets[i].computes, of))
            return &targets[i];
    return NULL;
}

const Target *target_at(int i)
{
    return i < COUNTOF(targets) && !targets[i].doubts ? &targets[i] : NULL;
}

bool target_has_threads(const Target *target)
{
    return target->threads;
}

bool target_is_exact(const Target *target)
{
    return target->exact;
}

bool target_has_images(const Target *target)
{
    return target->image != NULL;
}

// A reference keeps bounds beside values, in memory.
bool target_takes_values(const Target *target)
{
    return !target->doubts;
}

const char *target_name(const Target *target)
{
    return target->name;
}

const char *target_extension(const Target *target)
{
    return target->extension;
}

int target_warp(const Target *target)
{
    return target->warp;
}

int target_matrix_units(const Target *target)
{
    return target->units;
}

bool target_whole_local(const Target *target)
{
    return target->whole_local;
}

int64_t target_bytes(const Target *target, Scalar scalar)
{
    int64_t bytes = scalar_info[scalar].bytes;
    // Halfs with their bounds are two floats.
    return !target->doubts ? bytes
                           : 2 * (bytes == 2 && scalar_info[scalar].floating ? 4 : bytes);
}

const char *target_options(const Target *target, Math math)
{
    return target->math[math] ? target->math[math] : "";
}

// Units -------------------------------------------------------------------------------

static bool is_decision(const KExpr *e, const void *of)
{
    return e->kind == K_CALL ? !e->callee->body || expr_decides(e->callee->body)
                             : e->kind == K_OP && op_decides(e->op, e->arg[0]->type);
}

static bool decides(const Stm *stm, const void *of)
{
    return kexpr_any(stm->value, is_decision, of);
}

// What one kernel decides in doubt another may read.
static bool unit_decides(const Unit *unit)
{
    for (int i = 0; i < unit->kernels.len; i++)
        if (block_any(&unit->kernels.at[i]->body, decides, NULL))
            return true;
    return false;
}

bool emit_follows(const Target *target, const Unit *unit)
{
    return target->follow && unit->launches.len > 1;
}

void emit_kernel(Buf *out, const Target *target, const Unit *unit, const Kernel *kernel)
{
    Printer p;
    printer_init(&p, out, target, unit->program);
    p.decides = target->doubts && unit_decides(unit);
    p.follows = emit_follows(target, unit);
    p.wide_sums = unit->wide_sums;
    put_kernel(&p, kernel);
    printer_release(&p);
}

static void put_sizes(Printer *p)
{
    int n = p->program->sizes.len;
    const SizeDecl *size = p->program->sizes.at;
    for (int i = 0; i < n; i++) {
        int64_t value;
        put(p, "%s%s", i ? ", " : ": ", size[i].name);
        if (size[i].generic)
            put(p, " (generic)");
        else if (size[i].arith && arith_is_const(size[i].arith, &value))
            put(p, " = %lld", (long long)value);
    }
}

static void put_launch(Printer *p, const Unit *unit, const Launch *launch)
{
    const Kernel *kernel = launch->kernel;
    put(p, "//   %s, global (", kernel->name);
    for (int i = 0; i < 3; i++) {
        put(p, i ? ", " : "");
        arith_print(&p->line, launch->global[i]);
    }
    put(p, "), local (%lld, %lld, %lld), arguments (", (long long)kernel->local[0],
        (long long)kernel->local[1], (long long)kernel->local[2]);
    for (int i = 0; i < kernel->params.len; i++)
        put(p, "%s%s%s", i ? ", " : "", launch->buffer[i]->name,
            p->target->image && kernel_reads_image(kernel, kernel->params.at[i])
                ? " as an image"
                : "");
    for (int i = 0; i < kernel->sizes.len; i++) {
        put(p, kernel->params.len + i ? ", " : "");
        arith_print(&p->line, launch->size[i]);
    }
    put(p, ")");
    if (emit_local_most(p->target, kernel)) {
        put(p, ", ");
        arith_print(&p->line,
                    emit_local_bytes(unit->program->ir->arith, p->target, kernel));
        put(p, " bytes of shared memory");
    }
    buf_write(p->out, p->line.text, p->line.len); // a comment must not be wrapped
    buf_putc(p->out, '\n');
    buf_clear(&p->line);
}

enum { LAUNCHES_SHOWN = 8 };

static void put_head(Printer *p, const Unit *unit)
{
    put(p, "// %s", unit->program->main ? unit->program->main->name : "program");
    put_sizes(p);
    buf_printf(p->out, "%s\n//\n// Launches, in order:\n", p->line.text);
    buf_clear(&p->line);
    int n = MIN(unit->launches.len, LAUNCHES_SHOWN);
    for (int i = 0; i < n; i++)
        put_launch(p, unit, &unit->launches.at[i]);
    if (n < unit->launches.len)
        buf_printf(p->out, "//   and %d more\n", unit->launches.len - n);
    const char *options = target_options(p->target, unit->program->math);
    if (*options)
        buf_printf(p->out, "//\n// Compiler options: %s\n", options);
    buf_putc(p->out, '\n');
}

static void find_in_value(const KExpr *e, void *set)
{
    vectors_add(set, e->type, e->kind == K_OP);
}

static void find_vectors(Stm *stm, void *set)
{
    if (stm->var)
        vectors_add(set, stm->var->type, false);
    kexpr_each(stm->value, find_in_value, set);
}

void emit_unit(Buf *out, const Target *target, const Unit *unit)
{
    Printer p;
    Uses uses = {0};
    AutoBuf kernels = buf_new();
    for (int i = 0; i < unit->kernels.len; i++) {
        block_each(&unit->kernels.at[i]->body, find_vectors, &uses.vectors);
        if (i > 0)
            buf_putc(&kernels, '\n');
        emit_kernel(&kernels, target, unit, unit->kernels.at[i]);
    }
    uses.text = kernels.text;
    printer_init(&p, out, target, unit->program);
    put_head(&p, unit);
    printer_release(&p);
    size_t before = out->len;
    put_prelude(out, target, unit->program, &uses);
    if (out->len > before)
        buf_putc(out, '\n');
    buf_write(out, kernels.text, kernels.len);
}
