// SPDX-License-Identifier: Apache-2.0
//
// The reader of scripts and libraries: one grammar (doc/fusion.md) for both, after paper
// 004, Listing 1. Definitions of functions in it are in the language of programs and are
// read by its parser, from a copy of the text in which everything else is blank, so that
// places in messages are those of the file.
//
// Errors: the first of a statement is reported, and reading goes on after its semicolon.

#include "fuse/read.h"

#include "ir/names.h"

#include <math.h>
#include <string.h>

typedef struct {
    Script *script;
    Draft *draft;
    Diags *diags;
    const Source *source;
    const Token *token;
    int at;
    bool failed;
    char *defs; // the copy for the language's parser
    bool any_def;
    int names;           // taken so far
    const Binding *size; // as the user has them
    int nsize;
} ScriptReader;

// Tokens ------------------------------------------------------------------------------

static const Token *look(const ScriptReader *r)
{
    return &r->token[r->at];
}

static bool expected(ScriptReader *r, const char *what)
{
    const Token *t = look(r);
    bool named = t->kind == TOK_NAME;
    if (!r->failed && t->kind != TOK_BAD)
        diag_error(r->diags, t->span, "F001", "expected %s, found %s%s%s", what,
                   named ? "`" : "", named ? t->text : token_text[t->kind],
                   named ? "`" : "");
    r->failed = true;
    return false;
}

static bool accept(ScriptReader *r, TokenKind kind)
{
    bool is = !r->failed && look(r)->kind == kind;
    r->at += is;
    return is;
}

static bool need(ScriptReader *r, TokenKind kind)
{
    return accept(r, kind) || expected(r, token_text[kind]);
}

static bool accept_word(ScriptReader *r, const char *word)
{
    bool is = !r->failed && look(r)->kind == TOK_NAME && strcmp(look(r)->text, word) == 0;
    r->at += is;
    return is;
}

enum { NAMES_MAX = 10000 }; // of a text: each is looked for among others

// Reads no further.
static void too_many_names(ScriptReader *r)
{
    diag_error(r->diags, look(r)->span, "F039", "the text has more than %d names",
               NAMES_MAX);
    r->failed = true;
    while (look(r)->kind != TOK_END)
        r->at++;
}

static Name take_name(ScriptReader *r, const char *what)
{
    const Token *t = look(r);
    if (t->kind == TOK_NAME && ++r->names > NAMES_MAX)
        too_many_names(r);
    if (r->failed || t->kind != TOK_NAME) {
        expected(r, what);
        return (Name){"", span_none};
    }
    r->at++;
    return (Name){t->text, t->span};
}

static int take_count(ScriptReader *r, const char *what, int most)
{
    const Token *t = look(r);
    if (r->failed || t->kind != TOK_INT)
        return expected(r, what);
    r->at++;
    if (t->integer > most) {
        diag_error(r->diags, t->span, "F002", "%s is at most %d", what, most);
        r->failed = true;
        return 0;
    }
    return (int)t->integer;
}

// Types -------------------------------------------------------------------------------

enum { WORDS_MAX = 1 << 20 };

int type_words(const Type *type)
{
    return (int)fmin(ceil(type_bytes(type, NULL, NULL) / 4), WORDS_MAX);
}

static const TypeName *find_type(const ScriptReader *r, const char *name)
{
    for (int i = 0; i < r->draft->types.len; i++)
        if (strcmp(r->draft->types.at[i]->name, name) == 0)
            return r->draft->types.at[i];
    return NULL;
}

// A number, or a size.
static int take_length(ScriptReader *r)
{
    const Script *script = r->script;
    if (look(r)->kind != TOK_NAME)
        return take_count(r, "a length", WORDS_MAX);
    Name name = take_name(r, "a size");
    const Binding *size = binding_find(script->sizes.at, script->sizes.len, name.text);
    if (size)
        return (int)MIN(size->value, WORDS_MAX);
    diag_error(r->diags, name.span, "F036",
               "the size `%s` has no value: `size %s = 301;`, or -s %s=301", name.text,
               name.text, name.text);
    r->failed = true;
    return 0;
}

// [5][5]float
static const Type *take_type(ScriptReader *r)
{
    int len[8], n = 0;
    Ir *ir = r->script->ir;
    Span span = look(r)->span;
    while (n < COUNTOF(len) && accept(r, TOK_LBRACKET)) {
        len[n++] = take_length(r);
        need(r, TOK_RBRACKET);
    }
    Name scalar = take_name(r, "a type such as `float`");
    const Type *type = name_is_type(scalar.text);
    if (!r->failed && !type)
        r->failed = !diag_error(r->diags, scalar.span, "F003",
                                "elements consist of scalars such as `float` or `int`, or "
                                "of vectors of them, not of `%s`",
                                scalar.text);
    while (n-- > 0 && !r->failed)
        type = type_array(ir->arena, arith_const(ir->arith, len[n]), type);
    int words = r->failed ? 1 : type_words(type);
    if (words < 1 || words > ELEM_WORDS_MAX)
        r->failed = !diag_error(r->diags, span, "F002",
                                "an element has 1 to %d words: divide it into instances",
                                ELEM_WORDS_MAX);
    return type;
}

// type MATRIX33 = [3][3]float;
static void read_type(ScriptReader *r)
{
    Name name = take_name(r, "a name of a type");
    need(r, TOK_ASSIGN);
    const Type *type = take_type(r);
    if (r->failed)
        return;
    if (find_type(r, name.text)) {
        diag_error(r->diags, name.span, "F004", "the type `%s` is already declared",
                   name.text);
        return;
    }
    VEC_PUSH(r->script->arena, &r->draft->types,
             NEW_OF(r->script->arena, TypeName, name.text, type));
}

// Functions -----------------------------------------------------------------------------

const Elementary *script_function(const Script *script, const char *name, int part)
{
    VEC_EACH(const Elementary *, f, &script->functions)
        if (f->part == part && strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static void add_function(ScriptReader *r, Elementary *f)
{
    if (script_function(r->script, f->name, 0))
        diag_error(r->diags, f->span, "F004", "the function `%s` is already declared",
                   f->name);
    else
        for (; f; f = f->next)
            VEC_PUSH(r->script->arena, &r->script->functions, f);
}

// Functions that are definitions of the language ----------------------------------------

// Keeps the text up to the semicolon for the language's parser.
static void read_def(ScriptReader *r)
{
    uint32_t start = look(r)->span.start;
    while (look(r)->kind != TOK_SEMICOLON && look(r)->kind != TOK_END)
        r->at++;
    if (look(r)->kind == TOK_END) {
        expected(r, "`;` after the definition");
        return;
    }
    memcpy(r->defs + start, r->source->text + start, look(r)->span.start - start);
    r->any_def = true;
}

// What the user says of a size counts, and else what the script says, if anything.
static void add_size(ScriptReader *r, const Name *name, const int64_t *said)
{
    const Binding *given = binding_find(r->size, r->nsize, name->text);
    int64_t value = given ? given->value : said ? *said : 1;
    Script *script = r->script;
    if (strcmp(name->text, "T") == 0)
        diag_error(r->diags, name->span, "F004",
                   "T is the number of instances: give the size another name");
    else if (binding_find(script->sizes.at, script->sizes.len, name->text))
        diag_error(r->diags, name->span, "F004", "the size `%s` is already declared",
                   name->text);
    else if (value < 1 || value > INT32_MAX)
        diag_error(r->diags, name->span, "F002",
                   "the size `%s` must be from 1 to %d, not %lld", name->text, INT32_MAX,
                   (long long)value);
    else if (given || said)
        VEC_PUSH(script->arena, &script->sizes, ((Binding){name->text, value}));
}

// size N; or size N = 301, M = 8;
static void read_sizes(ScriptReader *r)
{
    do {
        int from = r->at++; // `size`, or a comma
        Name name = take_name(r, "a name of a size");
        if (r->failed)
            return;
        // Keeps the tokens from one to the one at hand for the language's parser.
        uint32_t start = r->token[from].span.start, end = r->token[r->at - 1].span.end;
        memcpy(r->defs + start, r->source->text + start, end - start);
        bool said = accept(r, TOK_ASSIGN);
        int64_t value = said ? take_count(r, "a value", INT32_MAX) : 0;
        if (!r->failed)
            add_size(r, &name, said ? &value : NULL);
    } while (look(r)->kind == TOK_COMMA);
}

static bool has_size(const Type *type)
{
    while (type->kind == T_ARRAY && arith_is_const(type->len, NULL))
        type = type->elem;
    return type->kind == T_ARRAY;
}

static void take_def(ScriptReader *r, const Program *program, const Function *def)
{
    bool generic = false;
    for (int i = 0; i < def->nparam; i++)
        generic = generic || has_size(def->params[i]->type);
    if (generic) {
        VEC_PUSH(r->script->arena, &r->script->generics, ((Generic){program, def}));
        return;
    }
    Elementary *f = define_function(r->script, program, def, r->diags);
    if (f)
        add_function(r, f);
}

// A size that has a value is that wherever it stands, as in a program; one without is what
// the arguments of a call say.
static void take_defs(ScriptReader *r)
{
    Script *script = r->script;
    Source *source =
        NEW_OF(script->arena, Source, r->source->name, r->defs, r->source->len);
    Program *program = ir_parse(script->ir, source, r->diags);
    if (program && ir_infer(program, r->diags))
        program = ir_bind_some(program, script->sizes.at, script->sizes.len, r->diags);
    else
        program = NULL;
    for (int i = 0; program && i < program->defs.len; i++)
        take_def(r, program, program->defs.at[i]);
}

// Statements --------------------------------------------------------------------------

static void read_variables(ScriptReader *r)
{
    Name name = take_name(r, "a type");
    if (r->failed)
        return;
    const TypeName *type = find_type(r, name.text);
    if (!type) {
        r->failed =
            !diag_error(r->diags, name.span, "F007", "there is no type `%s`", name.text);
        return;
    }
    do {
        ScriptVariable v = {take_name(r, "a variable"), type};
        if (!r->failed)
            VEC_PUSH(r->script->arena, &r->draft->variables, v);
    } while (accept(r, TOK_COMMA));
}

// A statement for each result.
static void read_call(ScriptReader *r)
{
    Statement s = {0};
    Name result[ARITY_MAX];
    do {
        Name name = take_name(r, "a variable");
        if (s.parts == ARITY_MAX)
            expected(r, arena_printf(r->script->arena, "at most %d results", ARITY_MAX));
        else
            result[s.parts++] = name;
    } while (accept(r, TOK_COMMA));
    need(r, TOK_ASSIGN);
    s.function = take_name(r, "a function");
    need(r, TOK_LPAREN);
    do {
        Name argument = take_name(r, "an argument");
        if (!r->failed && s.n == ARITY_MAX)
            expected(r, arena_printf(r->script->arena, "at most %d arguments", ARITY_MAX));
        else if (!r->failed)
            s.argument[s.n++] = argument;
    } while (accept(r, TOK_COMMA));
    need(r, TOK_RPAREN);
    for (; s.part < s.parts && !r->failed; s.part++) {
        s.result = result[s.part];
        VEC_PUSH(r->script->arena, &r->draft->statements, s);
    }
}

typedef VEC(Name) Names;

static void read_names(ScriptReader *r, const char *what, void *names)
{
    Names *list = names;
    do {
        Name name = take_name(r, what);
        if (!r->failed)
            VEC_PUSH(r->script->arena, list, name);
    } while (accept(r, TOK_COMMA));
}

static void read_statement(ScriptReader *r)
{
    TokenKind after = look(r)[look(r)->kind != TOK_END].kind;
    if (look(r)->kind == TOK_DEF || look(r)->kind == TOK_FUN)
        read_def(r);
    else if (look(r)->kind == TOK_SIZE)
        read_sizes(r);
    else if (look(r)->kind == TOK_NAME && (after == TOK_ASSIGN || after == TOK_COMMA))
        read_call(r);
    else if (accept_word(r, "type"))
        read_type(r);
    else if (accept_word(r, "input"))
        read_names(r, "an input", &r->draft->inputs);
    else if (accept_word(r, "uniform"))
        read_names(r, "an input", &r->draft->uniforms);
    else if (accept_word(r, "return"))
        read_names(r, "an output", &r->draft->outputs);
    else
        read_variables(r);
    need(r, TOK_SEMICOLON);
}

static bool read_text(ScriptReader *r, const Source *source)
{
    int errors = r->diags->errors;
    r->source = source;
    r->at = 0;
    r->any_def = false;
    r->names = 0;
    r->token = lex(r->script->arena, source, r->diags);
    r->defs = arena_alloc(r->script->arena, source->len + 1);
    for (size_t i = 0; i < source->len; i++)
        r->defs[i] = source->text[i] == '\n' ? '\n' : ' ';
    while (look(r)->kind != TOK_END) {
        r->failed = false;
        read_statement(r);
        while (r->failed && look(r)->kind != TOK_END && look(r)->kind != TOK_SEMICOLON)
            r->at++;
        r->at += r->failed && look(r)->kind == TOK_SEMICOLON;
    }
    if (r->any_def && r->diags->errors == errors)
        take_defs(r);
    return r->diags->errors == errors;
}

// Scripts -----------------------------------------------------------------------------

// The file's name without folder and suffix, as a name that kernels can begin with.
const char *script_name(Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool digit = name[0] >= '0' && name[0] <= '9';
    char *base = arena_printf(arena, "%s%.*s", digit ? "_" : "",
                              (int)MIN(strcspn(name, "."), 100), name);
    for (char *c = base; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') &&
            !(*c >= '0' && *c <= '9'))
            *c = '_';
    return *base ? base : "script";
}

// Every size that the user names is one of the script's.
static bool check_sizes(const ScriptReader *r)
{
    const Script *script = r->script;
    bool ok = true;
    for (int i = 0; i < r->nsize; i++)
        if (binding_find(r->size, i, r->size[i].name))
            ok = diag_error(r->diags, span_none, "F031", "size %s is given twice",
                            r->size[i].name);
        else if (strcmp(r->size[i].name, "T") != 0 &&
                 !binding_find(script->sizes.at, script->sizes.len, r->size[i].name))
            ok = diag_error(
                r->diags, span_none, "F031",
                "there is no size `%s`: a script has T, the number of instances, "
                "and those that it declares",
                r->size[i].name);
    return ok;
}

static bool read_script(Script *script, const Binding *size, int nsize, Diags *diags)
{
    Draft draft = {0};
    ScriptReader r = {.script = script, .draft = &draft, .diags = diags};
    Source *library =
        NEW_OF(script->arena, Source, "<library>", fuse_library, strlen(fuse_library));
    if (!read_text(&r, library))
        return false;
    r.size = size;
    r.nsize = nsize;
    bool ok = read_text(&r, &script->source) && check_sizes(&r);
    return ok && script_resolve(script, &draft, diags);
}

Script *script_parse(const char *name, const char *text, const Binding *size, int nsize,
                     Diags *diags, bool *ok)
{
    Ir *ir = ir_new();
    Script *script = NEW(ir->arena, Script);
    script->ir = ir;
    script->arena = ir->arena;
    script->name = script_name(ir->arena, name);
    script->source = (Source){arena_strdup(ir->arena, name), arena_strdup(ir->arena, text),
                              strlen(text)};
    *ok = read_script(script, size, nsize, diags);
    return script;
}

Script *script_load(const char *path, const Binding *size, int nsize, Diags *diags,
                    bool *ok)
{
    AutoBuf text = buf_new();
    Script *script = NULL;
    *ok = file_read(path, FILE_TEXT_MOST, &text);
    if (*ok)
        script = script_parse(path, text.text, size, nsize, diags, ok);
    else
        diag_error(diags, span_none, "C001", "cannot read %s: %s", path, text.text);
    return script;
}

void script_free(Script *script)
{
    if (script)
        ir_free(script->ir);
}
