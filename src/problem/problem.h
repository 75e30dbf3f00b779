// SPDX-License-Identifier: Apache-2.0
//
// problem: what to compute. A program, a script or a template with its sizes bound, its
// data and the reference for its outputs, and the candidates that its space holds. The
// kinds of problem end here: what comes after sees a space, and candidates.

#ifndef FW_PROBLEM_H
#define FW_PROBLEM_H

#include "derive/derive.h"
#include "emit/emit.h"
#include "fuse/fuse.h"
#include "measure/measure.h"
#include "problem/goal.h"
#include "search/search.h"
#include "search/steps.h"

// problem.c -----------------------------------------------------------------------------

typedef struct Template Template; // template.h
typedef struct ProblemKind ProblemKind;

// A program, a template or a script with its sizes bound, everything it needs in one place.
typedef struct {
    const ProblemKind *kind; // NULL if it is wrong
    Ir *ir;
    Arena *arena; // lives as long as the problem
    Source source;
    Program *program;   // as parsed and inferred; NULL if it is wrong or no program; of a
                        // script what it is as one, once its sizes are bound
    Program *bound;     // with its sizes; NULL if only checked, or no program
    Program *general;   // what kernels are made of: generic sizes are left open; else bound
    Template *template; // NULL: no template
    Script *script;     // NULL: no script, or not bound; diagnostics point into its text
    GoalTexts goal;     // of a template's file; the caller may set others
    const char *name;   // of the main definition
    const Binding *binding;
    int nbinding;
} Problem;

// Reads, parses and infers a file, a template's if its name ends in .json, a script's if in
// .fws, which is parsed when it is bound; kind is NULL, with diagnostics, if that fails.
// They point into the problem's source, so print them before problem_free. Owner: the
// caller.
Problem *problem_load(const char *path, Diags *diags);
bool path_is_script(const char *path);  // .fws
bool path_is_program(const char *path); // .fw
Problem *problem_parse(const char *name, const char *text, Diags *diags);
void problem_free(Problem *problem); // accepts NULL
// Binds sizes, all of them; false with diagnostics.
bool problem_bind(Problem *problem, const Binding *binding, int n, Diags *diags);
// The same, but generic sizes may stay open: enough for the text of a kernel, and not for
// what needs numbers (problem_bytes, a kind's arguments and data, a job).
bool problem_bind_open(Problem *problem, const Binding *binding, int n, Diags *diags);
// What its trials are judged by, in the space of its points; NULL with diagnostics. Owner:
// goal_close.
Goal *problem_goal(const Problem *problem, const Space *space, Diags *diags);
// Has a bound problem generic sizes, so that its kernels are right for others, too?
bool problem_is_generic(const Problem *problem);
// Does it stand for all sizes of ranges? What needs numbers is told those of one in the
// middle. (Its sizes are bound to ranges without a value.)
bool problem_spans(const Problem *problem);
// The same problem read anew, not bound. Owner: the caller, problem_free.
Problem *problem_again(const Problem *problem, Diags *diags);
// The same program with sizes of at most `most`, keeping each size's remainder modulo
// `keep`; NULL if its conditions do not allow them.
Problem *problem_shrunk(const Problem *problem, int64_t most, int64_t keep, Diags *diags);
uint64_t problem_hash(const Problem *problem); // of the bound program as printed
// With generic sizes: the hash of the problem that stands for all of them.
uint64_t problem_span_hash(const Problem *problem);
const char *problem_kernel(const Problem *problem); // what other tuners call it
const char *problem_label(const Problem *problem);  // "jacobi2d N=4096 M=4096"
// integers.c: how the numbers of each of n input planes are drawn. Owner: arena.
typedef struct {
    int64_t below;  // from 0 up to it; floats: 0: they are near 1
    int64_t inside; // ints from there on fold nothing
    bool index;     // floats: an index, a divisor or an opaque function reads them
} InputRange;
const InputRange *problem_ranges(const Problem *problem, int n, Arena *arena);
// refused.c: what the interpreter said, if the program or its inputs are wrong; NULL: it
// said nothing, or has no way to interpret them.
const Diag *refused_as_wrong(const Diags *said);
// Did the interpreter meet an integer that it cannot hold?
bool said_beyond(const Diags *said);
// The first call of a function that is C text, or leads to one; NULL: there is none.
const Expr *calls_opaque(const Problem *problem);
// False with a diagnostic if the interpreter refuses the program whatever its inputs are.
bool problem_never_refused(const Problem *problem, Diags *diags);
// A number of the program, all of whose sizes are bound.
int64_t problem_number(const Problem *problem, const Arith *a);
// Bytes that any kernel must move: each input read once, each output written once.
double problem_bytes(const Problem *problem);
// Whether the device has the types of its numbers, and its memory room for the arrays, each
// in a buffer; false with a diagnostic. What kernels allocate between launches is not
// counted.
bool problem_fits(const Problem *problem, const DeviceInfo *device, Diags *diags);

// The types of the planes (one a scalar component) of a value; returns how many there are,
// writes at most max.
enum { PLANES_MOST = 1024 };
int type_planes(Arena *arena, const Type *type, const Type **plane, int max);

// data.c: values as a runner's buffers ---------------------------------------------------

typedef struct {
    RunnerBuffer *buffer;
    int nbuffer, noutput;
    const int *output; // the buffer of each output
    double tolerance;  // as of a RunnerConfig
    const RunnerJudge *judge;
    int ninput;       // of a program: input planes, then output planes
    double seconds;   // of a program: what it took to compute the outputs
    double build_s;   // of that, what further sets share: the kernel is built once
    int64_t diverged; // elements whose steps diverge
    bool lesser;      // there was no time for bounds: one tolerance stands for them
} ProblemData;

// Those of a program: with given inputs, and with seeded random ones; the latter as values.
ProblemData *data_new(const Problem *problem, Value **inputs, Arena *arena);
ProblemData *data_random(const Problem *problem, uint64_t seed, Arena *arena);
Value **problem_inputs(const Problem *problem, uint64_t seed, Arena *arena);
// Inputs besides those of a search, of three kinds in turn: with so few digits that most
// sums are exact, so that whatever is left out shows; of both signs and many magnitudes;
// with infinities and values that are no numbers, but where a fold may not take such
// values. In each of the sets other elements are the largest, the least and the special of
// their lines. Where floats may become indices, they are as data_random has them.
typedef enum { MORE_FEW_DIGITS, MORE_SCALES, MORE_SPECIAL, MORE_KINDS } MoreKind;
enum { MORE_SETS = 16 * MORE_KINDS };
bool data_whole(const Problem *problem); // are few digits whole numbers?
ProblemData *data_more(const Problem *problem, int set, uint64_t seed, Arena *arena);
Value **data_inputs(const Problem *problem, const ProblemData *data, Arena *arena);
void data_expect(ProblemData *data, const Value *expect, Arena *arena);
// Where the outputs of a run are to go, of any kind of problem: as runner_run_one takes it.
void **data_outputs(const ProblemData *data, Arena *arena);

// job.c: a candidate as a job ---------------------------------------------------------

typedef struct {
    Unit *unit; // of a program
    Job job;
    Buf source;
    const Point *point;
} Candidate;

// Lowers and emits a point; its memory is the arena's, its text is released by
// candidate_release. name: prefix of its kernels. False with diagnostics.
bool candidate_make(const Problem *problem, const Derivation *derivation,
                    const Point *point, const char *name, const Target *target,
                    const char *prelude, Arena *arena, Candidate *candidate, Diags *diags);
// The same of an expression of a program that is lowered already; options name its kernels.
bool candidate_build(const Problem *problem, const Program *program, Expr *body,
                     const KernelOptions *options, const Target *target,
                     const char *prelude, Arena *arena, Candidate *candidate, Diags *diags);
void candidate_release(Candidate *candidate);

// program.c, template.c, script.c: the kinds of problem ---------------------------------

// Files for inputs, in place of random values.
typedef struct {
    const char *const *name;
    const char *const *file;
    int n;
} InputFiles;
// The file given for an input, or for one plane of an input of tuples (`a_0`); NULL: none.
const char *input_file(const InputFiles *files, const char *name);

// The variants of a bound problem on a device: a space, and the candidate of each point.
typedef struct {
    const Problem *problem;
    const Target *target; // the device's
    const Space *space;
    Derivation *derivation; // of a program
    Buf prelude;            // of a program
} Variants;

// An array that the kernels of a problem work on, in the order of a job's buffers: of a
// program its inputs, a plane each, then its outputs.
typedef struct {
    const char *name, *type; // of an element: "float", "uchar4"
    int64_t count, bytes;    // elements, and all of them
    const int64_t
        *shape; // extents in scalars, outermost first: a vector's width is the last
    int rank;   // how many; 0: a scalar
    const Arith *const *extent; // of a program: the same, in generic sizes; else NULL
    bool in, out;               // read by the kernels, written by them
    bool value;                 // a scalar, which is passed by value
    bool image;
} Argument;

// What others ask of a problem, of whichever kind it is: up to the candidate of a point.
struct ProblemKind {
    const char *name;     // "program", "template", "script"
    const char *strategy; // where none is asked for
    double limit_s;       // to build a candidate, and to run it
    bool (*bind)(Problem *problem, Diags *diags);
    void (*free)(Problem *problem);
    uint64_t (*hash)(const Problem *problem); // of what makes trials comparable
    double (*bytes)(const Problem *problem);
    double (*flops)(const Problem *problem); // NULL: counted in the program, or not known
    Argument *(*arguments)(const Problem *problem, Arena *arena, int *n);
    // Inputs, and outputs of which nothing is known yet; owner: arena.
    ProblemData *(*data)(const Problem *problem, uint64_t seed, const InputFiles *files,
                         Arena *arena, Diags *diags);
    // Computes what the outputs must be; how: in words.
    bool (*expect)(const Problem *problem, ProblemData *data, const char *device,
                   const Workplace *place, Arena *arena, const char **how, Diags *diags);
    // n sets of further inputs, with what the outputs must be, the reference having been
    // checked; returns how many there are, fewer with diagnostics. NULL: there are none.
    int (*more)(const Problem *problem, uint64_t seed, int n, ProblemData *data[MORE_SETS],
                const char *device, const Workplace *place, Arena *arena, Diags *diags);
    // Writes an output, as read from its buffer, to a .npy file.
    bool (*write)(const Problem *problem, const ProblemData *data, int output,
                  const void *raw, const char *path, Diags *diags);
    bool (*open)(Variants *variants, const DeviceInfo *device, Diags *diags);
    void (*close)(Variants *variants);
    int (*first)(const Variants *variants, Point *point, int max);
    bool (*candidate)(const Variants *variants, const Point *point, const char *name,
                      Arena *arena, Candidate *candidate, Diags *diags);
    void (*text)(const Variants *variants, const Candidate *candidate, Buf *text);
    // The launch shape of a point without making its candidate; NULL: a candidate is
    // needed.
    bool (*shape)(const void *variants, const Point *point, LaunchShape *shape);
};
extern const ProblemKind problem_program, problem_template, problem_script;
// script.c: reads a script with these sizes, and binds what it is as a program.
bool script_bind(Problem *problem, Diags *diags);

// False with a diagnostic: the device cannot run it, or the space is empty. Close it in
// either case.
bool variants_open(Variants *variants, const Problem *problem, const DeviceInfo *device,
                   Diags *diags);
void variants_close(Variants *variants);
// One constraint more on the space; false with a diagnostic if it is wrong, or if no point
// is left.
bool variants_constrain(Variants *variants, const char *text, Diags *diags);
// The plain point, then points that are often good, each once; returns how many there are.
int variants_first(const Variants *variants, Point *point, int max);
// A point as a job, its kernels named after `name` if they can be; see candidate_make.
bool variants_candidate(const Variants *variants, const Point *point, const char *name,
                        Arena *arena, Candidate *candidate, Diags *diags);
// Launches of points; the variants must outlive them.
LaunchShapes variants_launches(const Variants *variants);
// The kernels of a candidate as a file for the user.
void variants_text(const Variants *variants, const Candidate *candidate, Buf *text);
// What parameters that nobody names are: one output a work-item, nothing staged; of a
// template, its default point.
void variants_simplest(const Variants *variants, Point *point);

// Starts `name` as a problem of no kind yet, with room for what it needs.
Problem *problem_new(const char *name, const char *text, size_t len);

// work.c ------------------------------------------------------------------------------

// What any kernel of a problem must do. flops: operations on floating numbers as the
// program writes them, each element of a map or reduction once; fma counts 2, vectors by
// lane; comparisons that yield bools, choices and conversions count 0. Halfs count as half
// a float each: two are done at once. Of integers each product of two that are not constant
// counts 2, with what is added to it, and all else 0: a device may do that besides. ops:
// the operations of all types, comparisons and choices too, by which a processor's time
// goes.
typedef struct {
    double bytes; // each input read once, each output written once
    double float_flops, double_flops, int_ops, ops;
    // Flops of sums of products, by the type of the factors, which matrix units may do; of
    // floats only with --math fast. They are none of the others.
    double products[SCALARS];
} Work;

Work problem_work(const Problem *problem);
double work_flops(const Work *work); // of all types

// strict.c ----------------------------------------------------------------------------

// What keeps points of --math strict from giving the same bits everywhere, in the program's
// words; NULL: nothing does.
const char *strict_exception(const Problem *problem);
bool problem_is_strict(const Problem *problem); // by its math, and nothing keeps it from it

// small.c -----------------------------------------------------------------------------

// The problem at small sizes, with data whose outputs are what the interpreter says. NULL,
// and why: there are no such sizes, or (why NULL) it cannot hold the integers of any.
// Owner: the caller; the data are the arena's.
Problem *problem_small(const Problem *problem, Arena *arena, ProblemData **data,
                       const char **why);

// reference.c -------------------------------------------------------------------------

// Sets what the outputs must be, and the bound of each element, by the plain kernel with
// bounds, after it was checked against the interpreter; where it cannot be run, by the
// interpreter if that is quick. A device whose target has a reference (target_reference)
// runs what takes the host long. how: all of it in words. False with diagnostics.
bool reference_compute(const Problem *problem, ProblemData *data, const char *device,
                       const Workplace *place, Arena *arena, const char **how,
                       Diags *diags);

// Whether what a right kernel computes may be the reference for others, within the
// tolerance that this sets: not of a program that decides by rounded numbers or makes
// steps.
bool reference_by_kernel(const Problem *problem, ProblemData *data);

// What its text begins with. of: the target of the kernels that it judges, or NULL;
// few_digits: it asks which sums are exact.
void reference_prelude(Buf *out, const Problem *problem, const Derivation *derivation,
                       const Target *target, const Target *of, bool few_digits);

// The same of n sets of inputs besides, by the plain kernel alone, once that was checked.
// Returns of how many; the first are those that show most.
int reference_more(const Problem *problem, uint64_t seed, int n,
                   ProblemData *data[MORE_SETS], const char *device, const Workplace *place,
                   Arena *arena, Diags *diags);

// Where compiled kernels and data files go: forewarp under $XDG_CACHE_HOME or ~/.cache.
const char *workplace_folder(Arena *arena);

// Version of the code generator: trials of another one are not comparable.
#define CODEGEN_VERSION FW_VERSION "-77"
// Version of stored trials, which are comparable only if one rule says what is right, too.
#define TRIAL_VERSION CODEGEN_VERSION "." CHECK_VERSION
// Version of trials that were compared within one tolerance, because there was no time for
// bounds (ProblemData.lesser).
#define LESSER_VERSION TRIAL_VERSION "-lesser"

#endif
