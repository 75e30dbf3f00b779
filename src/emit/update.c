// SPDX-License-Identifier: Apache-2.0
//
// Atomic updates of an element of memory: a function of the target where it has one, else a
// loop that tries again until nobody else changed the element in between.
//
//   source  OpenCL C 1.2, section 6.12.11; CUDA C++ Programming Guide, atomic functions

#include "emit/print.h"

#include <string.h>

typedef struct {
    Op op;
    const char *opencl, *cuda; // of integers
    const char *word;          // in the names of our functions
} Update;

static const Update updates[] = {
    {OP_ADD, "atomic_add", "atomicAdd", "add"},
    {OP_MUL, NULL, NULL, "mul"},
    {OP_MINIMUM, "atomic_min", "atomicMin", "min"},
    {OP_MAXIMUM, "atomic_max", "atomicMax", "max"},
};

static const Scalar kinds[] = {S_INT, S_UINT, S_FLOAT, S_DOUBLE};

static const Update *update_of(Op op)
{
    for (int i = 0; i < COUNTOF(updates); i++)
        if (updates[i].op == op)
            return &updates[i];
    BUG("no atomic operation %s", op_info[op].text);
}

// The target's own function; NULL: it has none.
static const char *own_function(const Target *target, const Update *update, Scalar scalar)
{
    bool whole = scalar_info[scalar].kind != SCALAR_FLOAT;
    if (!target->c_scalars)
        return whole ? update->opencl : NULL;
    return whole || update->op == OP_ADD ? update->cuda : NULL;
}

// Of OpenCL C, whose pointers name the memory that they point to.
static const char *place_suffix(const Target *target, AddrSpace space)
{
    return target->c_scalars ? "" : space == MEM_LOCAL ? "_local" : "_global";
}

void put_update(Printer *p, const Stm *stm)
{
    const KExpr *e = stm->value;
    bool first = kexpr_is_load(e->arg[0], stm->buffer);
    const Update *update = update_of(e->op);
    const char *own = own_function(p->target, update, stm->buffer->scalar);
    if (own)
        put(p, "%s(&", own);
    else
        put(p, "fw_%s_%s%s(&", update->word, scalar_info[stm->buffer->scalar].name,
            place_suffix(p->target, stm->buffer->space));
    put_form(p, "%e, %v);\n", stm->buffer, stm->index, e->arg[first]);
}

// Our functions -------------------------------------------------------------------------

typedef struct {
    const char *word;      // of as many bytes
    const char *exchange;  // if the element is still what it was
    const char *from, *to; // the word's bits as a number, and back
} CompareAndSwap;

static CompareAndSwap exchange_of(const Target *target, Scalar scalar)
{
    bool real = scalar_info[scalar].kind == SCALAR_FLOAT;
    if (!target->c_scalars)
        return (CompareAndSwap){"int", "atomic_cmpxchg", real ? "as_float" : "", "as_int"};
    if (scalar == S_DOUBLE)
        return (CompareAndSwap){"unsigned long long", "atomicCAS", "__longlong_as_double",
                                "__double_as_longlong"};
    return (CompareAndSwap){"int", "atomicCAS", real ? "__int_as_float" : "",
                            real ? "__float_as_int" : ""};
}

static const char *place_qualifiers(const Target *target, AddrSpace space)
{
    return target->c_scalars    ? ""
           : space == MEM_LOCAL ? "volatile local "
                                : "volatile global ";
}

// Numbers that are not negative are in the order of their words, negative ones in the
// opposite one of these without a sign, and all their words are larger.
static void put_pick(Buf *out, const Target *target, const Update *update, Scalar scalar,
                     AddrSpace space)
{
    const char *place = place_qualifiers(target, space);
    bool wide = scalar == S_DOUBLE, larger = update->op == OP_MAXIMUM,
         c = target->c_scalars;
    const char *word = wide ? "long long" : "int",
               *bare = wide ? "unsigned long long" : "uint";
    const char *bits = !c ? "as_int" : wide ? "__double_as_longlong" : "__float_as_int";
    const Update *opposite = update_of(larger ? OP_MINIMUM : OP_MAXIMUM);
    buf_printf(out,
               "%svoid fw_%s_%s%s(%s%s *place, %s v)\n"
               "{\n"
               "    if (v >= 0)\n"
               "        %s((%s%s *)place, v > 0 ? %s(v) : 0);\n"
               "    else if (v < 0)\n"
               "        %s((%s%s *)place, (%s)%s(v));\n"
               "}\n",
               target->function, update->word, scalar_info[scalar].name,
               place_suffix(target, space), place, scalar_info[scalar].name,
               scalar_info[scalar].name, c ? update->cuda : update->opencl, place, word,
               bits, c ? opposite->cuda : opposite->opencl, place,
               c && !wide ? "unsigned" : bare, c && !wide ? "unsigned" : bare, bits);
}

static void put_function(Buf *out, const Target *target, const Update *update,
                         Scalar scalar, AddrSpace space)
{
    const char *place = place_qualifiers(target, space);
    const char *type = target->c_scalars ? scalar_info[scalar].c : scalar_info[scalar].name;
    if (update->op == OP_MINIMUM || update->op == OP_MAXIMUM) {
        put_pick(out, target, update, scalar, space);
        return;
    }
    CompareAndSwap x = exchange_of(target, scalar);
    buf_printf(out,
               "%svoid fw_%s_%s%s(%s%s *place, %s v)\n"
               "{\n"
               "    %s%s *word = (%s%s *)place;\n"
               "    %s was = *word, now;\n"
               "    do {\n"
               "        now = was;\n"
               "        const %s a = %s(now);\n"
               "        was = %s(word, now, %s(a %s v));\n"
               "    } while (was != now);\n"
               "}\n",
               target->function, update->word, scalar_info[scalar].name,
               place_suffix(target, space), place, type, type, place, x.word, place, x.word,
               x.word, type, x.from, x.exchange, x.to, op_info[update->op].text);
}

static bool is_wanted(const Target *target, const Update *update, Scalar scalar,
                      AddrSpace space, const Uses *uses)
{
    char name[64];
    snprintf(name, sizeof name, "fw_%s_%s%s(", update->word, scalar_info[scalar].name,
             place_suffix(target, space));
    bool wide = scalar == S_DOUBLE && !target->c_scalars;
    bool once = target->c_scalars && space == MEM_LOCAL;
    return !own_function(target, update, scalar) && !wide && !once &&
           (!uses->text || strstr(uses->text, name));
}

static bool has_body(const Program *program)
{
    return program->main && program->main->body;
}

void put_updates(Buf *out, const Target *target, const Program *program, const Uses *uses)
{
    size_t before = out->len;
    static const Pattern by_key[] = {P_REDUCEBY, P_REDBYGLB, P_REDBYLCL, P_REDBYOWN};
    bool any = false;
    for (int i = 0; i < COUNTOF(by_key) && target->threads && has_body(program); i++)
        any |= expr_find_pattern(program->main->body, by_key[i]) != NULL;
    if (!any)
        return;
    for (int i = 0; i < COUNTOF(updates); i++)
        for (int k = 0; k < COUNTOF(kinds); k++)
            for (AddrSpace space = MEM_GLOBAL; space <= MEM_LOCAL; space++)
                if (is_wanted(target, &updates[i], kinds[k], space, uses))
                    put_function(out, target, &updates[i], kinds[k], space);
    if (out->len > before)
        buf_putc(out, '\n');
}
