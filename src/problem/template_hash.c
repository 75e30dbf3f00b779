// SPDX-License-Identifier: Apache-2.0
//
// The identity of a template as a number, because trials of another template say nothing
// about this one. The contents of these files count: the problem file, the kernel, the
// reference, the arrays in .npy files, and the files that a text includes from folders that
// options of the compiler name. Names of files count as the problem file writes them, so a
// folder may move.
//
// An #include is found as a text, also where a condition leaves it out, and by no macro;
// headers of the compiler's own belong to its version, which the device's fingerprint has.

#include "problem/template.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_text(const char *text, uint64_t hash)
{
    return hash_bytes(text, strlen(text) + 1, hash);
}

// Piece by piece: arrays may be large. One that cannot be read is another thing than an
// empty one; what needs it says why.
static uint64_t hash_file(const char *path, uint64_t hash)
{
    enum { PIECE = 1 << 16 };
    FILE *file = fopen(path, "rb");
    AUTO_FREE char *piece = xmalloc(PIECE);
    hash = hash_mix(hash, file != NULL);
    for (size_t n; file && (n = fread(piece, 1, PIECE, file)) > 0;)
        hash = hash_bytes(piece, n, hash);
    if (file)
        fclose(file);
    return hash;
}

// Included files ----------------------------------------------------------------------

typedef struct {
    Arena *arena;
    VEC(const char *) folder; // of the options
    VEC(const char *) seen;   // files that are in the hash
    uint64_t hash;
} Including;

static void include_text(Including *in, const char *text, const char *beside);

// True if there is such a file.
static bool include_file(Including *in, const char *path)
{
    if (FIND_TEXT(in->seen.at, in->seen.len, path) >= 0)
        return true;
    AutoBuf text = buf_new();
    bool found = file_read(path, FILE_TEXT_MOST, &text);
    if (found) {
        VEC_PUSH(in->arena, &in->seen, path);
        in->hash = hash_bytes(text.text, text.len, in->hash);
        const char *slash = strrchr(path, '/');
        include_text(in, text.text,
                     slash ? arena_strndup(in->arena, path, (size_t)(slash - path)) : ".");
    }
    return found;
}

// Beside the text that includes it, unless that is NULL, else in the first folder that has
// it, as compilers look.
static void include_name(Including *in, const char *name, const char *beside)
{
    if (name[0] == '/') {
        include_file(in, name);
        return;
    }
    if (beside && include_file(in, arena_printf(in->arena, "%s/%s", beside, name)))
        return;
    for (int i = 0; i < in->folder.len; i++)
        if (include_file(in, arena_printf(in->arena, "%s/%s", in->folder.at[i], name)))
            return;
}

static const char *after_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

// `#include "x.h"` or <x.h> at the start of a line: its name, NULL where there is none.
static const char *included(const char *line, Arena *arena)
{
    const char *at = after_blanks(line);
    at = *at == '#' ? after_blanks(at + 1) : "";
    if (strncmp(at, "include", 7) != 0)
        return NULL;
    at = after_blanks(at + 7);
    if (*at != '"' && *at != '<')
        return NULL;
    size_t n = strcspn(at + 1, *at == '"' ? "\"\n" : ">\n");
    return arena_strndup(arena, at + 1, n);
}

static void include_text(Including *in, const char *text, const char *beside)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *name = included(line, in->arena);
        if (name)
            include_name(in, name, beside);
    }
}

// What follows one of the words in an option, `-I x` and `-Ix`; NULL: another option.
static const char *option_value(const char *option, const char *const *word, char **save)
{
    for (; *word; word++) {
        size_t n = strlen(*word);
        if (strncmp(option, *word, n) != 0)
            continue;
        const char *value = option + n + (option[n] == '=');
        return *value ? value : strtok_r(NULL, " \t\n", save);
    }
    return NULL;
}

static void read_options(Including *in, const char *options)
{
    static const char *const folders[] = {"-I", "-isystem", "--include-path", NULL};
    static const char *const files[] = {"-include", "--pre-include", NULL};
    VEC(const char *) file = {0};
    char *save = NULL, *text = arena_strdup(in->arena, options);
    for (char *o = strtok_r(text, " \t\n", &save); o; o = strtok_r(NULL, " \t\n", &save)) {
        const char *folder = option_value(o, folders, &save);
        const char *name = folder ? NULL : option_value(o, files, &save);
        if (folder)
            VEC_PUSH(in->arena, &in->folder, folder);
        if (name)
            VEC_PUSH(in->arena, &file, name);
    }
    for (int i = 0; i < file.len; i++)
        include_name(in, file.at[i], ".");
}

uint64_t template_included(const Template *t)
{
    Including in = {.arena = arena_new()};
    const char *beside = t->folder[0] ? t->folder : ".";
    read_options(&in, t->options);
    include_text(&in, t->text, beside);
    if (t->reference.text)
        include_text(&in, t->reference.text, beside);
    uint64_t hash = in.hash;
    arena_free(in.arena);
    return hash;
}

// The whole ---------------------------------------------------------------------------

uint64_t template_hash(const Problem *problem)
{
    const Template *t = problem->template;
    json_t *file = json_copy(t->json); // what is wanted of a kernel says nothing about it
    json_object_del(file, "metrics");
    json_object_del(file, "objective");
    AUTO_FREE char *json =
        json_dumps(file, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    uint64_t hash = hash_text(json ? json : "", hash_text(t->text, 0));
    json_decref(file);
    if (t->reference.text)
        hash = hash_text(t->reference.text, hash);
    for (int i = 0; i < t->size.len; i++)
        hash = hash_mix(hash_text(t->size.at[i].name, hash), (uint64_t)t->size.at[i].value);
    for (int i = 0; i < t->arg.len; i++)
        if (t->arg.at[i].fill.kind == FILL_FILE || t->arg.at[i].fill.kind == FILL_RAW)
            hash = hash_file(t->arg.at[i].fill.file, hash);
    for (int i = 0; i < t->reference.value.len; i++)
        if (t->reference.value.at[i].kind != FILL_EXPRESSION &&
            t->reference.value.at[i].file)
            hash = hash_file(t->reference.value.at[i].file, hash);
    return hash_mix(hash, template_included(t));
}
