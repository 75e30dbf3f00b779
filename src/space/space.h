// SPDX-License-Identifier: Apache-2.0
//
// space: tunable parameters, their domains and constraints, and the valid points.
//
// A space is never enumerated blindly: parameters that share constraints form a
// component, each component becomes a decision diagram with every constraint tested as
// soon as its last parameter is bound, and the space is the product of its components.
// Counting, uniform sampling of valid points and ranking points by number follow from
// that (components: the chain of trees of Rasch et al., ATF, TACO 2021).
//
// It does not know what a parameter means, and never measures.

#ifndef FW_SPACE_H
#define FW_SPACE_H

#include "base/base.h"

enum { SPACE_PARAMS_MAX = 64 };

typedef struct {
    const char *name;
    int n;                    // size of the domain
    const double *value;      // the number used in constraints; integers are exact
    const char *const *label; // the text of each value, or NULL where numbers suffice
    const char
        *form; // how Python writes each: VALUE_WHOLE, ..; NULL: all whole or as need be
} SpaceParam;

// 1 as 1, as True, as 1.0; 0.5 is 0.5 in all.
enum { VALUE_WHOLE, VALUE_TRUTH, VALUE_REAL, VALUE_WORD };

typedef struct Space Space;

// One assignment: choice[i] indexes the domain of parameter i.
typedef struct {
    int16_t choice[SPACE_PARAMS_MAX];
} Point;

Space *space_new(void); // owner: the caller, space_free
void space_free(Space *space);
// One with the same parameters, and without their constraints. Owner: the caller.
Space *space_like(const Space *space);

// Adds a parameter; the arrays are copied. Returns its number.
int space_add(Space *space, const char *name, const double *value, int n);
int space_add_ints(Space *space, const char *name, const int64_t *value, int n);
void space_write_as(Space *space, int param, const char *form); // copied, one a value
// A parameter whose values are words; in constraints they are written 'word'.
int space_add_words(Space *space, const char *name, const char *const *word, int n);

// Adds a constraint over parameter names, numbers and 'words': an expression of Python or
// C without its statements (doc/problems.md, Expressions). As in Python `/` is exact, `%`
// has the sign of the divisor and comparisons chain. A point is valid if all are non-zero.
// A division by zero makes a constraint false. False with a diagnostic whose span points
// into the text on a syntax error or an unknown name.
bool space_constrain(Space *space, const char *text, Diags *diags);
// The same of a part of a larger text, where its diagnostics then point.
bool space_constrain_span(Space *space, Span span, Diags *diags);
int space_constraints(const Space *space);
const char *space_constraint(const Space *space, int i); // as given

// A constraint that code decides: which choices of a few parameters go together. A choice
// of -1 is not made yet: is there any for it? The parameters have no value twice. text says
// it in words, and is part of the identity of the space. user must outlive the space.
typedef bool SpaceHolds(const void *user, const int *choice);
typedef struct {
    int n;
    int param[8];
    SpaceHolds *holds;
    const void *user;
    const char *text;
} SpaceRelation;
void space_relate(Space *space, const SpaceRelation *relation);
int space_relations(const Space *space);
const SpaceRelation *space_relation(const Space *space, int i);

// As space_constrain; its messages name the text by `where`.
bool space_constrain_at(Space *space, const char *where, const char *text, Diags *diags);
// A name that stands for a number in what is read after it, and is no parameter: a size.
// `X[0]` and `best.lx` are such names too.
void space_define(Space *space, const char *name, double value);
// The same for a word.
void space_define_word(Space *space, const char *name, const char *word);

// An expression in the language of constraints, for its value at points. Owner: the space.
// NULL with a diagnostic, as above.
typedef struct SpaceExpr SpaceExpr;
const SpaceExpr *space_expression(Space *space, const char *where, const char *text,
                                  Diags *diags);
// The values of a list as Python writes it: `[1, 2]`, `list(range(6))`,
// `[2**i for i in range(6) if i > 1]`, and several joined by `+`. How many; -1 with
// diagnostics. Owner: the space.
typedef struct {
    double number;
    const char *word; // NULL: a number
    int form;
} SpaceItem;
int space_items(Space *space, const char *where, const char *text, SpaceItem **item,
                Diags *diags);
// point may be NULL if the space has no parameters. NAN: a division by zero.
double space_evaluate(const Space *space, const SpaceExpr *expr, const Point *point);

// The same at numbers of the parameters, one each, that need be none of their values.
double space_evaluate_numbers(const SpaceExpr *expr, const double *number);
bool space_reads(const SpaceExpr *expr, int param);
const SpaceExpr *space_read(Space *space, int param); // the parameter as an expression
// The same in a space of one parameter, for n <= 64 numbers that it is.
void space_evaluate_many(const SpaceExpr *expr, const double *number, int n, double *out);
// A number that the expression never exceeds, whatever values the parameters have, tight
// where it grows or falls with each; varies: it reads parameters. NAN: not known.
double space_most(const Space *space, const SpaceExpr *expr, bool *varies);

// Builds the components; called by the questions below when needed. False with a
// diagnostic if one component has so little structure that its diagram would outgrow memory
// or patience. Spaces from users' text: ask first, since
// a question about a space that cannot be built ends the program.
bool space_build(Space *space, Diags *diags);

// Only these points are valid any more, as far as the constraints allow them: a space that
// somebody has recorded. They are copied, and may repeat.
void space_only(Space *space, const Point *point, int n);

int space_params(const Space *space);
const SpaceParam *space_param(const Space *space, int i);
int space_find(const Space *space, const char *name); // -1 if there is none
// Says that there is no parameter of this name, and which there are; false.
bool space_no_parameter(const Space *space, Span span, const char *code, const char *name,
                        Diags *diags);
double space_raw_count(const Space *space); // product of the domain sizes
double space_count(const Space *space);     // valid points; exact below 2^53

bool space_valid(const Space *space, const Point *point);
// The constraint that a point of the domains breaks, as given; NULL: none.
const char *space_broken(const Space *space, const Point *point);
// The valid point of a number in [0, count), in lexicographic order of components. Only the
// first 2^53 points have numbers; larger spaces are sampled.
void space_point(const Space *space, uint64_t number, Point *point);
uint64_t space_number(const Space *space, const Point *point); // inverse; point valid
// Uniform over valid points.
void space_sample(const Space *space, Rng *rng, Point *point);
// Valid points that differ from a given one in exactly one parameter (any other value,
// or only the next smaller or larger if adjacent); returns how many there are, writes at
// most max.
int space_neighbours(const Space *space, const Point *point, bool adjacent, Point *out,
                     int max);

double space_value(const Space *space, const Point *point, int param);
int64_t space_int(const Space *space, const Point *point,
                  const char *name); // BUG if absent
const char *space_word(const Space *space, const Point *point, const char *name);
// Sets a parameter by the text of its value; false if the domain lacks it.
bool space_set(const Space *space, Point *point, const char *name, const char *text);
// Sets all that another space's point says; false if a domain lacks a value.
bool point_move(const Space *to, Point *point, const Space *from, const Point *given);
uint64_t point_hash(const Space *space, const Point *point);
bool point_equal(const Space *space, const Point *a, const Point *b);
// A value of a parameter as point_print writes it.
void space_value_print(Buf *out, const Space *space, int param, int choice);
// `lx=64 ly=4 scheme=tiled`; reads the same back, parameters in any order, all named.
void point_print(Buf *out, const Space *space, const Point *point);
const char *point_text(const Space *space, const Point *point,
                       Arena *arena); // owner: arena
bool point_parse(const Space *space, const char *text, Point *point);
// The same of some parameters; those that the text does not name stay.
bool point_change(const Space *space, const char *text, Point *point);
// Has a text the form of a point, of whatever space: NAME=VALUE, each name once?
bool point_is_text(const char *text);
// Names, domains and constraints as one hash: the identity of the space.
uint64_t space_hash(const Space *space);

#endif
