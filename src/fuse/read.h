// SPDX-License-Identifier: Apache-2.0
//
// What the reader (read.c) hands to the checks (script.c): statements with names; and what
// makes functions (define.c).

#ifndef FW_FUSE_READ_H
#define FW_FUSE_READ_H

#include "fuse/fuse.h"

typedef struct {
    const char *text;
    Span span;
} Name;

typedef struct {
    const char *name;
    const Type *type;
} TypeName;

typedef struct {
    Name name;
    const TypeName *type;
} ScriptVariable;

// One result of a call.
typedef struct {
    Name result, function;
    int part, parts; // which of its results, of how many
    int n;
    Name argument[ARITY_MAX];
} Statement;

typedef struct {
    VEC(const TypeName *) types;
    VEC(ScriptVariable) variables;
    VEC(Name) inputs, uniforms, outputs;
    VEC(Statement) statements;
} Draft;

// Of 4 bytes, in a type of constant lengths.
int type_words(const Type *type);
// What computes a result of the function of a name; NULL: it has fewer, or is generic.
const Elementary *script_function(const Script *script, const char *name, int part);

// define.c: the function that a definition of a bound program is, one for each of its
// results; NULL with diagnostics if its types are no elements. Owner: the script.
Elementary *define_function(Script *script, const Program *program, const Function *def,
                            Diags *diags);
// The function that a generic definition is for arguments of these types, made at
// the first call; NULL with diagnostics where there is none, or the types are not such.
const Elementary *script_instance(Script *script, const Statement *call,
                                  const Type *const *type, Diags *diags);

// script.c: makes calls and elements of the statements; false with diagnostics.
bool script_resolve(Script *script, const Draft *draft, Diags *diags);

#endif
