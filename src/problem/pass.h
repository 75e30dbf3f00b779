// SPDX-License-Identifier: Apache-2.0
//
// Passes over the elements of a buffer, a chunk at a time, by all processors; and what the
// interpreter says.

#ifndef FW_PROBLEM_PASS_H
#define FW_PROBLEM_PASS_H

#include "problem/problem.h"

enum { CHUNK = 4096 }; // elements looked at together

// What a pass finds: the most of something, and how many elements.
typedef struct {
    double most;
    int64_t count;
} Found;

// Which elements of two are compared: all (but what has no bound and overflows), those with
// a bound, those that the bound decides (it is not larger than their size), or those that
// it does not allow.
typedef enum { COMPARE_ALL, COMPARE_BOUNDED, COMPARE_DECIDED, COMPARE_OUTSIDE } Compared;

// The members after buffer are as the function of its chunks uses them.
typedef struct RefPass RefPass;
struct RefPass {
    void (*chunk)(const RefPass *pass, int64_t at, int64_t n, Found *found);
    const RunnerBuffer *buffer;
    const void *raw;
    const RunnerBuffer *beside; // of another run, whose outputs are raw; NULL: none
    char *to;
    float *bound;
    double scale, tolerance;
    Compared compared;
    bool all;
    pthread_mutex_t lock;
    Found found;
};

Found pass_run(RefPass pass);
// n elements from the one at `at` on, to and from numbers.
void pass_unpack(Scalar scalar, const void *from, int64_t at, int64_t n, double *to);
void pass_pack(Scalar scalar, const double *from, int64_t at, int64_t n, char *to);

// bounded.c -------------------------------------------------------------------------------

// Room for the pairs of a buffer, of values and bounds; what it holds at first, without a
// bound. Owner: arena.
RunnerBuffer pairs_of(const RunnerBuffer *from, Arena *arena);
// An input as it is, but for halfs, which C++ does not have.
RunnerBuffer pairs_read(const RunnerBuffer *from, Arena *arena);
// Takes what an output must be, and its bounds, out of the pairs that the reference wrote.
void pairs_take(RunnerBuffer *to, const void *pairs, Arena *arena);
// The least float that is not less.
float float_above(double x);
double scalar_most(Scalar scalar); // the largest number of a floating type

// limits.c --------------------------------------------------------------------------------

// The largest difference of the floating outputs of two, relative to their magnitudes.
double outputs_differ(const ProblemData *data, const void *const *other, Compared compared);
// What is expected of each buffer. Owner: arena.
const void **outputs_of(const ProblemData *data, Arena *arena);
// The same data; floating inputs differ by their last bit. Nothing is expected of it: its
// outputs may be further from the reference than a kernel's. Owner: arena.
ProblemData *nudged_data(const ProblemData *data, Arena *arena);

// Do bounds allow more than the tolerance, or say nothing of most elements? continuous:
// the program decides nothing, so what has no bound only grew beyond all.
bool limits_are_wide(const ProblemData *data, bool continuous);
// Without bounds: elements whose steps diverge are undecided, and the others may be off by
// as much as is ever allowed, until limits_set. Owner: arena.
void limits_diverged(ProblemData *data, Arena *arena);
// Lets bounds, or without them the tolerance, be no wider than what a change of the inputs'
// last bit, with a margin, does to the outputs.
void limits_set(ProblemData *data, const ProblemData *nudged, bool bounded,
                bool continuous);

// Without bounds: how many elements may differ, or integers by how much, as decisions turn
// that rounding is near.
void limits_spare(ProblemData *data, const ProblemData *nudged, bool decides, Arena *arena);
int64_t limits_spared(const ProblemData *data); // elements that may
// How many elements an output has, and of how many nothing is decided.
typedef struct {
    int64_t elements, undecided;
} Doubt;

Doubt limits_doubt(const ProblemData *data);

// small.c --------------------------------------------------------------------------------

// Scalar operations the interpreter may spend, about 2 s.
enum { INTERPRETER_QUOTA = 20000000 };
// The least that it does.
double interpret_least(const Problem *problem);
// Sets what it says that the outputs are; false: it has no answer within `most` operations.
bool interpret(const Problem *problem, ProblemData *data, int64_t most, Arena *arena,
               Diags *said);

#endif
