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

// small.c --------------------------------------------------------------------------------

// Scalar operations the interpreter may spend, about 2 s.
enum { INTERPRETER_QUOTA = 20000000 };
// The least that it does.
double interpret_least(const Problem *problem);
// Sets what it says that the outputs are; false: it has no answer within `most` operations.
bool interpret(const Problem *problem, ProblemData *data, int64_t most, Arena *arena,
               Diags *said);

#endif
