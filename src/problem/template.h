// SPDX-License-Identifier: Apache-2.0
//
// template: a user's own OpenCL or CUDA kernel with tuning parameters as macros, described
// by a problem file in JSON (doc/problems.md). The second kind of problem: everything
// right of its space is shared with programs.
//
//   source  the form of the problem: paper 002, section 5.1 (macros in the kernel, values
//           set on the host before the launch); the community's T1 format (TuningSchema)
//
// The kernel's text is never parsed: macros go before it, as definitions.

#ifndef FW_PROBLEM_TEMPLATE_H
#define FW_PROBLEM_TEMPLATE_H

#include "measure/json.h"
#include "problem/npy.h"
#include "problem/problem.h"

// Element types of arguments: ELEMENT(text, NumPy's name, bytes, kind, how it is compared,
// and how where elements have bounds). Integers without are compared as the ints that their
// bytes make.
#define ELEMENTS(X)                                                                        \
    X("char", "|i1", 1, 'i', S_INT, S_CHAR)                                                \
    X("uchar", "|u1", 1, 'u', S_INT, S_UCHAR)                                              \
    X("short", "<i2", 2, 'i', S_INT, S_SHORT)                                              \
    X("ushort", "<u2", 2, 'u', S_INT, S_USHORT)                                            \
    X("int", "<i4", 4, 'i', S_INT, S_INT)                                                  \
    X("uint", "<u4", 4, 'u', S_INT, S_UINT)                                                \
    X("long", "<i8", 8, 'i', S_INT, S_LONG)                                                \
    X("ulong", "<u8", 8, 'u', S_INT, S_ULONG)                                              \
    X("half", "<f2", 2, 'f', S_HALF, S_HALF)                                               \
    X("float", "<f4", 4, 'f', S_FLOAT, S_FLOAT)                                            \
    X("double", "<f8", 8, 'f', S_DOUBLE, S_DOUBLE)

typedef struct {
    const char *name, *dtype;
    int bytes;
    char kind; // 'i' signed, 'u' unsigned, 'f' floating
    Scalar compared, own;
} Element;

// The element type of a name such as float or uchar4, and its width; NULL: none. A vector
// of three has room for four in OpenCL.
const Element *element_find(const char *name, int *width);
// Numbers to and from the device's layout.
void element_pack(const Element *element, const double *from, int64_t n, void *to);
void element_unpack(const Element *element, const void *from, int64_t n, double *to);

typedef enum {
    FILL_RANDOM,
    FILL_CONSTANT,
    FILL_FILE,
    FILL_RAW,
    FILL_EXPRESSION,
    FILL_VIEW
} FillKind;
typedef enum { ACCESS_IN, ACCESS_OUT, ACCESS_INOUT } Access;
typedef enum { EDGE_ZERO, EDGE_CLAMP } Edge;

typedef struct {
    FillKind kind;
    bool ranged;
    double low, high; // FILL_RANDOM; FILL_CONSTANT: low
    const char *file; // FILL_FILE, FILL_RAW; FILL_EXPRESSION: of the element's number i
    int of;           // FILL_VIEW: the argument it shows
    const char *pad;  // elements added on each side, in every dimension
    Edge edge;
} Fill;

// A member of a struct, or the lanes of a value that is no struct.
typedef struct {
    const Element *element;
    int width, offset; // lanes, and bytes from the start
} Member;

typedef struct {
    const char *name, *type;
    const Element *element;   // of a struct whose members differ uchar
    int width;                // lanes of a vector type or struct; bytes of such a struct
    VEC(Member) member;       // of a struct; else one
    VEC(const char *) values; // of a value, one a lane; empty: an array, or local memory
    const char *local;        // of local memory: how many elements
    const char *symbol;       // of a module's variable; NULL: an argument
    bool both;                // that, and an argument too
    int ndim;                 // 0: no array
    const char *shape[DIMS_MAX];
    Access access;
    bool unchecked;   // an output that is not compared
    const char *part; // of an output: compared where this of the place `i` holds; NULL: all
    bool bounded;     // how far it may be off is said: absolute + relative * |expected|
    double absolute, relative;
    int64_t spared;   // so many of its elements may be wrong
    double rounding;  // by so many units inputs are moved, to see what it decides; 0: not
    bool image;       // its data in image memory
    const char *when; // passed only where this holds; NULL: always
    Fill fill;
    // once sizes are bound:
    int64_t length[DIMS_MAX], count; // count: numbers, lanes included
    bool varies; // its shape depends on parameters; length is the largest
    int64_t pad;
    int buffer; // the runner's number; -1: no array
    const SpaceExpr *const *value_expr, *when_expr, *local_expr;
} TemplateArg;

// A launch, or a list of them that runs as one.
typedef struct TemplateLaunch {
    VEC(struct TemplateLaunch) inner; // of a list; else empty
    const char *when;                 // done only where this holds; NULL: always
    const char *repeat;               // how often; NULL: once
    const char *as; // what the number of the repetition is called, from 0; NULL: nothing
    int loop;       // the parameter of the scope that it is; -1: none
    const char *swap[2]; // arrays that change places after it; NULL: none
    const SpaceExpr *when_expr, *repeat_expr;
    const char *kernel;
    const char *global[DIMS_MAX], *local[DIMS_MAX];
    bool groups;                // global counts groups
    VEC(const char *) argument; // names; empty: all, in order
    VEC(int) arg;               // their numbers
    bool passed;                // all of them, whatever their `if` says
    const char *shared;         // bytes of dynamic shared memory; NULL: none
    const SpaceExpr *global_expr[DIMS_MAX], *local_expr[DIMS_MAX], *shared_expr;
} TemplateLaunch;

typedef enum {
    REFERENCE_POINT,  // the template at a point
    REFERENCE_C,      // a C function
    REFERENCE_KERNEL, // another kernel, on the same device
    REFERENCE_FW,     // a program
    REFERENCE_VALUES, // numbers, expressions of the place, files
    REFERENCE_JUDGE,  // nothing is expected: a C function or a command judges
    REFERENCE_NONE    // nothing is compared
} ReferenceKind;

typedef struct {
    ReferenceKind kind;
    bool given;               // the problem file says so
    const char *command;      // JUDGE; NULL: a C function
    const char *file;         // C, KERNEL, FW, JUDGE
    const char *text;         // its text
    TemplateLaunch launch;    // KERNEL; C: kernel and arguments
    json_t *point;            // POINT: values by name; NULL: the default point
    Point at;                 // once sizes are bound
    VEC(const char *) output; // VALUES: names, and what each must hold
    VEC(Fill) value;
} TemplateReference;

typedef struct {
    const char *name;
    int n;
    const double *value;
    const char *form;        // VALUE_WHOLE, ..: how each is written
    const char *const *word; // NULL: numbers
    const char *first;       // its value in the default point; NULL: not said
} TemplateParam;

typedef struct {
    const char *where, *text; // "convolution.json: constraints[2]"
} TemplateText;

struct Template {
    Problem *problem;
    Arena *arena;
    const char *path, *folder, *language;
    json_t *json; // the problem file
    VEC(const char *) file;
    const char *text; // of the files, each after a #line
    const char *options;
    const char *include; // the option that finds what the text includes; "": nothing
    bool kernel_tuner;   // defines what Kernel Tuner defines
    VEC(Binding) size;
    VEC(TemplateParam) param;
    VEC(TemplateText) constraint;
    VEC(TemplateArg) arg;
    VEC(TemplateLaunch) launch;
    VEC(const char *) loop; // names of repetitions
    TemplateReference reference;
    double tolerance;
    Space *sizes; // names only; messages may point into it
    // once sizes are bound:
    Space *space;
    Space *scope; // for expressions of launches: its parameters, then the loops
    Point plain;
    const char *macros; // the sizes
};

// Reads the JSON of a problem file into problem->template. False with diagnostics.
bool template_load(Problem *problem, Diags *diags);
// Is it written in what a device takes? A diagnostic if not.
bool template_fits(const Template *t, const char *target, Diags *diags);
// "#line 1" of a file, whatever is in its name.
void template_line(Buf *out, const char *path);

// template_read.c, template_t1.c: from JSON. False with diagnostics that name the place.
bool template_read(Template *t, Diags *diags);
bool template_read_t1(Template *t, Diags *diags);

// What the two share.
typedef struct {
    Template *t;
    Diags *diags;
} TemplateReader;
bool reader_wrong(const TemplateReader *r, const char *where, const char *format, ...)
    FW_PRINTF(3, 4);
// A file beside the problem file; its text is appended. NULL with a diagnostic.
const char *reader_file(const TemplateReader *r, const char *where, const char *name,
                        Buf *text);
const char *reader_path(const TemplateReader *r, const char *name);
bool reader_sources(const TemplateReader *r);          // reads t->file into t->text
int template_arg(const Template *t, const char *name); // -1 if there is none
bool reader_is_name(const char *text);                 // letters, digits and _
// Can it name a function, as a kernel of this language or a C function?
bool reader_kernel(const TemplateReader *r, const char *where, const char *name,
                   bool kernel);
// Are the kernels of the launches in the texts? Only what certainly is not there is wrong.
bool reader_kernels(const TemplateReader *r);
// Whether the text has a parameter or variable of this name.
bool template_declares(const char *text, const char *name);
// A type by its name, or a struct by the names of its members' types.
bool reader_type(const TemplateReader *r, const char *where, const json_t *type,
                 TemplateArg *arg);
// For the readers of objects: a key's place; no keys but those known; a text; names of
// arguments; one launch.
const char *reader_in(const TemplateReader *r, const char *where, const char *key);
bool reader_keys(const TemplateReader *r, const char *where, const json_t *object,
                 const char *const *known);
bool reader_text(const TemplateReader *r, const char *where, const json_t *object,
                 const char *key, bool needed, const char **out);
bool reader_arg_names(const TemplateReader *r, const char *where, const json_t *names,
                      TemplateLaunch *launch);
bool reader_launch(const TemplateReader *r, const char *where, const json_t *json,
                   TemplateLaunch *launch);
bool reader_reference(const TemplateReader *r,
                      const json_t *json); // template_read_reference.c
// An output that the reference names, and what it must hold.
bool reader_expected(const TemplateReader *r, const char *where, const char *name,
                     const Fill *value);
// How far an output may be off: its "tolerance".
bool reader_bound(const TemplateReader *r, const char *where, const json_t *json,
                  TemplateArg *arg);
// Contents of an array: "random", a number, {"npy": FILE}, ..; without: as they are.
bool reader_fill(const TemplateReader *r, const char *where, const json_t *json,
                 Fill *fill);
// Adds a parameter; its values are numbers, truth values and texts.
bool reader_param(const TemplateReader *r, const char *where, const char *name,
                  const json_t *values, const json_t *first);

// `[2**i for i in range(0, 6)]`: a Python list of numbers or words as a JSON array. NULL
// with a diagnostic.
json_t *list_parse(const Template *t, const char *where, const char *text, Diags *diags);

// Nothing is compared, whatever the file says; before it is bound.
void template_uncheck(Template *t);

// template_bind.c: sizes, space, lengths.
bool template_bind(Problem *problem, Diags *diags);
void template_unbind(Template *t);
// `#define` lines of the sizes, but for names that the text declares itself, and those of a
// point.
void template_macros(const Template *t, const char *text, const Point *point, Buf *out);
// The value of a size or a parameter as its macro has it; false: there is none.
bool template_value_print(const Template *t, const Point *point, const char *name,
                          Buf *out);

// template_data.c
ProblemData *template_data(const Problem *problem, uint64_t seed, const InputFiles *files,
                           Arena *arena, Diags *diags);
// Contents that no other array decides, so no view; `where` is their place in the file.
bool template_fill(const Template *t, const TemplateArg *arg, const Fill *fill,
                   const char *where, uint64_t seed, char *to, Diags *diags);
double template_bytes(const Problem *problem);
Argument *template_arguments(const Problem *problem, Arena *arena, int *n);
// The layout of an argument's elements; shape: room for DIMS_MAX + 1.
NpyLayout template_layout(const TemplateArg *arg, int64_t *shape);
bool template_write(const Problem *problem, const ProblemData *data, int output,
                    const void *raw, const char *path, Diags *diags);

// template_hash.c: of all that a verdict about a kernel depends on: the problem file
// whatever its layout, the sizes, and what is in the files that it names and includes.
uint64_t template_hash(const Problem *problem);
uint64_t template_included(const Template *t); // of what the texts include

// Has each element a bound of its own, or are some of them spared or left out?
bool template_has_bounds(const TemplateArg *arg);

// template_check.c: of what was found to be expected, the part that counts and how far it
// may be off; and what judges in its place.
bool template_bounds(const Template *t, ProblemData *data, Arena *arena, Diags *diags);
const RunnerJudge *template_judge(const Template *t, Arena *arena);
// An expression of the place `i` at n <= 64 places from `first` on. NULL: it is wrong.
typedef struct {
    Space *space;
    const SpaceExpr *expr;
} PlaceExpr;
bool place_open(const Template *t, const char *where, const char *text, PlaceExpr *made,
                Diags *diags); // space_free in either case
void place_values(const PlaceExpr *expr, int64_t first, int n, double *out);

// template_reference.c
bool template_expect(const Problem *problem, ProblemData *data, const char *device,
                     const Workplace *place, Arena *arena, const char **how, Diags *diags);

// template.c
bool template_is_array(const TemplateArg *arg);
// The entries by which the host device calls the C functions of these launches.
void template_entries(const Template *t, const TemplateLaunch *launch, int n,
                      const Point *point, Buf *out);
// The first launch that is no list.
const TemplateLaunch *template_first_launch(const Template *t);
enum { LOOP_MOST = 4096 }; // of a repetition
// template_launch.c: the launches of a point, one after the other. False with a diagnostic.
bool template_launches(const Template *t, const TemplateLaunch *launch, int n,
                       const Point *point, Arena *arena, Job *job, Diags *diags);
bool template_passes(const Template *t, const TemplateArg *arg, const Point *point);
bool template_job(const Template *t, const TemplateLaunch *launch, int nlaunch,
                  const Point *point, Arena *arena, Job *job, Diags *diags);

#endif
