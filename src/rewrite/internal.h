// SPDX-License-Identifier: Apache-2.0
//
// What the rule files share: building, matching and looking around.

#ifndef FW_REWRITE_INTERNAL_H
#define FW_REWRITE_INTERNAL_H

#include "rewrite/rewrite.h"

#define RULE(id, name, args, family, left, right, guard, source) RuleApply rule_##name;
#include "rewrite/rules.def"
#undef RULE

enum { PARTS_MAX = 32 }; // of a zip

// build.c: the arguments are taken over, not copied.
Expr *make(Rewrite *rw, Pattern p, int dims, const Arith *const *nums, Expr *fun, Expr *in);
Expr *make1(Rewrite *rw, Pattern p, Expr *in); // one dimension, no integers
Expr *make_sized(Rewrite *rw, Pattern p, const Arith *n, Expr *in); // one integer
Expr *make_map(Rewrite *rw, int dims, Expr *fun, Expr *in);
Expr *map_by(Rewrite *rw, int dims, Param *param, Expr *body, Expr *in); // \param -> body
Expr *array_by(Rewrite *rw, const Arith *len, Param *param, Expr *body);
Expr *make_op(Rewrite *rw, Op op, Expr *a, Expr *b); // of one operand: b is NULL
Expr *get_of(Rewrite *rw, Param *param, int i);      // component i of what the name is of
// A fold as another one, of a pattern, over an array.
Expr *fold_like(Rewrite *rw, const Expr *fold, Pattern p, Expr *in);
Expr *arith_of(Rewrite *rw, Op op, Expr *a, int64_t b); // a op b
Expr *make_reduce(Rewrite *rw, Pattern p, Expr *fun, Expr *init, Expr *in);
Expr *make_zip(Rewrite *rw, int dims, Expr **part, int n);
// The same fold, of what a map makes: by an operation if it adds up something of elements.
Expr *fold_of_map(Rewrite *rw, const Expr *reduce);
// More elements of that value: two numbers for each dimension, before and behind.
Expr *make_pad(Rewrite *rw, int dims, const Arith *const *nums, Expr *value, Expr *in);
// What a fold folds, or is to, with k neutral elements more.
Expr *with_neutral(Rewrite *rw, const Expr *fold, const Arith *k, Expr *in);
Expr *make_lambda(Rewrite *rw, Param *param, Expr *body);
// Item i of a tuple of n; of one, the value itself.
Expr *part_of_value(Rewrite *rw, Expr *value, int i, int n);
Expr *all_parts(Rewrite *rw, Expr **part, int n); // the tuple of n items, or the only item
// lists.c: the components i of a list of tuples; of a list of others, the list.
Expr *item_list(Rewrite *rw, Param *list, bool tuple, int i);
Expr *make_identity(Rewrite *rw);
// fusion.c: the same layout over something else.
Expr *layout_like(Rewrite *rw, const Expr *layout, Expr *in);
Expr *counting(Rewrite *rw, const Arith *len); // the array 0, 1, ...
// A key in place of that of an element, (key, value), if that is one of k; else -1.
Expr *key_if_valid(Rewrite *rw, Param *element, const Arith *k, Expr *key);
Param *fresh(Rewrite *rw, const char *name);
Expr *use(Rewrite *rw, Param *param);
Expr *copy_of(Rewrite *rw, const Expr *expr); // a copy
// The expression, changed in place: what is equal to `old` is a use of the name.
Expr *with_name(Rewrite *rw, Expr *expr, const Expr *old, Param *name);
// p nested over the outer dims, outermost first; par[k] is the thread dimension.
Expr *make_nest(Rewrite *rw, Pattern p, int dims, const int64_t *par, Expr *f, Expr *in);
// f(value): a copy of the body of a lambda of one parameter. The value is bound by a let if
// it is a computation used more than once.
Expr *call(Rewrite *rw, const Expr *lambda, Expr *value);
// What follows lets, with values for some names. Values of lets that mention none of them
// are shared and not copied, so only one of the two may go on: a copy for each step of a
// program of a thousand lets would take gigabytes.
Expr *rest_with(Rewrite *rw, const Expr *rest, Param *const *name, const Expr *const *value,
                int n);
// The lambda's body with values for all its parameters.
Expr *call_all(Rewrite *rw, const Expr *lambda, const Expr *const *value);
// A copy of a start value, written so that it keeps its type where nothing asks for one.
Expr *start_value(Rewrite *rw, const Expr *init);
Expr *cast_value(Rewrite *rw, Scalar scalar, Scalar from, Expr *e); // from its type to one
// by_key.c: component i of a start value; of a scalar, all of it.
Expr *start_part(Rewrite *rw, const Expr *init, int i);
// A number as a value of a type, in each component of a tuple; NULL: the type has arrays or
// truth values.
Expr *literal_of(Rewrite *rw, const Type *type, int number);
// Writes literals of floating types so: they then keep their type where nothing asks for
// one.
void settle_literals(Expr *expr);

// Extends an array at its far ends by k each (clamp), and cuts again: nothing where k is 0.
Expr *pad_far(Rewrite *rw, int dims, const Arith *const *k, Expr *in);
// An array of that length in parts of n; no result may depend on what the last one ends
// with.
Expr *split_unread(Rewrite *rw, Expr *in, const Arith *len, int64_t n);
Expr *cut(Rewrite *rw, const Expr *original, const Arith *const *k, int dims, Expr *in);
const Arith *num(Rewrite *rw, int64_t value);
// What must be added to a length so that n divides it.
const Arith *missing(Rewrite *rw, const Arith *len, int64_t n);

// The expression with another one in that place; all that is beside the way there is shared
// with the expression, which the caller gives up or copies.
Expr *put_at(Rewrite *rw, const Expr *expr, const Path *at, Expr *value);
// group.c: names that stand around a body, each known to those after it.
typedef struct {
    Param *param[PARTS_MAX];
    Expr *value[PARTS_MAX];
    int n;
} NamedValues;
// The value by a new name; n must be below PARTS_MAX.
Expr *name_value(Rewrite *rw, NamedValues *names, const char *name, Expr *value);
// The arrays that items read neighbours of by names, the parts of a zip each, so that they
// can be held in local memory.
Expr *name_inputs(Rewrite *rw, NamedValues *in, const Expr *x);
// An expression with names in place of its stages, for rules that read it twice.
Expr *without_stages(Rewrite *rw, const Expr *x, NamedValues *stages);
Expr *with_names(Rewrite *rw, const NamedValues *names, Expr *body);
// Component i of all elements, in as many dimensions as an array of them has; 0 dimensions:
// more than a map has.
int dims_of_tuples(const Type *type);
Expr *component_of_all(Rewrite *rw, Expr *all, int dims, int i);
// Does a map give tuples, as they stand behind the names of its function? That of their
// component i.
bool is_map_of_tuples(const Expr *expr);
Expr *map_of_item(Rewrite *rw, const Expr *map, int i);

// match.c
bool is_threads(Pattern p);         // mapGlb, mapWrg, mapLcl
bool is_counting(const Expr *expr); // indexed.c: an array of its places, 0, 1, 2, ...
bool divides(Rewrite *rw, int64_t n, const Arith *len);
bool has_constants(const Expr *pattern); // all its numbers are
// Is it a literal, perhaps of another type? Then the number.
bool is_number(const Expr *e, double *number);
// Of \a e -> a o g(e), or g(e) o a: which argument g(e) is; else -1. i: of that component
// of a function of tuples, (..., a.i o g(e), ...); -1: of all.
int combined(const Expr *f, int i);
// The fold of all elements that a keyed fold would be without its keys.
Expr *without_keys(Ir *ir, const Expr *keyed);
// As combined of all, where g is not the identity.
int accumulated(const Expr *f);
// Is it, or each component, a o g(e), where some g is not the identity? Results of parts
// are no elements then, whatever they have in common at values that are tried.
bool adds_up_others(const Expr *f);
// One of the operations that are associative and commutative, on scalars.
bool is_operation(const Expr *reduce);
// Notes what is known of the folds and prefixes of an expression.
void note_laws(Ir *ir, Expr *expr);
// Folds by the function of this one are by parts: no trial is needed.
void know_parts(Rewrite *rw, const Expr *fold);
// hoist.c: what is bound between an expression and the place that is looked at, innermost
// first.
typedef struct Bound Bound;
struct Bound {
    const Expr *by; // a let, or a lambda
    const Bound *outer;
};
bool mentions_bound(const Expr *expr, const Bound *bound);
// The same nodes, but for one of them; names stay as they are.
Expr *exchanged(Rewrite *rw, const Expr *expr, const Expr *old, Expr *value);
// What is bound around operand i of an expression that `bound` is around; own: for one
// more.
const Bound *bound_around(const Expr *expr, int i, const Bound *bound, Bound *own);
bool mentions_threads(const Expr *expr, Pattern p, int dim);
int64_t static_count(const Type *type); // scalars; -1 if not constant

// Looking around: is there such a pattern whose function we are in?
bool inside(const Rewrite *rw, Pattern p, int dim); // dim -1: any
bool inside_loop(const Rewrite *rw);                // sequential or abstract
bool inside_abstract(const Rewrite *rw);            // what is no loop yet
bool by_all_items(const Rewrite *rw); // of a work-group, or those along x of a row of it
bool is_exchanged(const Type *type);  // between lanes of a warp, or between groups
bool at_host(const Rewrite *rw);      // in no function but those of steps

#endif
