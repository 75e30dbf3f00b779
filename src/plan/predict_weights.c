// SPDX-License-Identifier: Apache-2.0
//
// Weights of a device: kept as JSON, and what they say of counts.

#include "plan/predict.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT_VERSION = 1 };

// Where --------------------------------------------------------------------------------

static const char *weights_folder(Arena *arena)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data && data[0])
        return arena_printf(arena, "%s/forewarp/weights", data);
    return arena_printf(arena, "%s/.local/share/forewarp/weights",
                        home && home[0] ? home : ".");
}

const char *weights_path(Arena *arena, const char *fingerprint)
{
    return arena_printf(arena, "%s/%s.json", weights_folder(arena), fingerprint);
}

// Saving -------------------------------------------------------------------------------

static json_t *weights_json(const Weights *w)
{
    json_t *list = json_array();
    Buf name;
    buf_init(&name);
    for (int p = 0; p < PROPERTIES; p++) {
        if (!w->support[p])
            continue;
        buf_clear(&name);
        counts_name(&name, p);
        double error = isfinite(w->error[p]) ? w->error[p] : -1;
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:i}", "property", name.text,
                                              "seconds", w->weight[p], "error", error,
                                              "support", w->support[p]));
    }
    buf_release(&name);
    const DeviceInfo *d = &w->device;
    return json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:i, s:f, s:o}",
        "forewarp_weights", FORMAT_VERSION, "id", d->id, "device", d->name, "fingerprint",
        d->fingerprint, "target", d->target, "is_cpu", d->is_cpu, "units", d->compute_units,
        "warp", d->warp, "line_bytes", d->line_bytes, "max_group", (json_int_t)d->max_group,
        "local_bytes", (json_int_t)d->local_bytes, "global_bytes",
        (json_int_t)d->global_bytes, "rows", w->rows, "rms", w->rms, "weights", list);
}

bool weights_save(const Weights *w, const char *path, Diags *diags)
{
    json_t *json = weights_json(w);
    char *text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    char *folder = xstrdup(path), *slash = strrchr(folder, '/');
    if (slash && slash != folder)
        *slash = 0;
    bool ok = (!slash || slash == folder || file_mkdirs(folder)) &&
              file_write(path, text, strlen(text));
    if (!ok)
        diag_world(diags, "M001", "cannot write %s: %s", path, strerror(errno));
    free(folder);
    free(text);
    json_decref(json);
    return ok;
}

// Loading -------------------------------------------------------------------------------

static void get_text(const json_t *json, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(json, key));
    snprintf(out, size, "%s", text ? text : "");
}

static int64_t get_int(const json_t *json, const char *key, int64_t least)
{
    return MAX((int64_t)json_integer_value(json_object_get(json, key)), least);
}

static void get_device(const json_t *json, DeviceInfo *d)
{
    *d = (DeviceInfo){0};
    get_text(json, "id", d->id, sizeof d->id);
    get_text(json, "device", d->name, sizeof d->name);
    get_text(json, "fingerprint", d->fingerprint, sizeof d->fingerprint);
    get_text(json, "target", d->target, sizeof d->target);
    d->is_cpu = json_is_true(json_object_get(json, "is_cpu"));
    d->has_double = true;
    d->compute_units = (int)MIN(get_int(json, "units", 1), 1 << 20);
    d->warp = (int)MIN(get_int(json, "warp", 1), 64);
    d->line_bytes = (int)MIN(get_int(json, "line_bytes", 16), 4096);
    d->max_group = get_int(json, "max_group", 1);
    d->local_bytes = get_int(json, "local_bytes", 0);
    d->global_bytes = get_int(json, "global_bytes", 0);
    d->alloc_bytes = d->global_bytes;
    for (int i = 0; i < 3; i++)
        d->max_item[i] = d->max_group;
}

// What is wrong with it, or NULL.
static const char *load_json(Weights *w, const json_t *json)
{
    *w = (Weights){0};
    if (!json_is_integer(json_object_get(json, "forewarp_weights")))
        return "it holds no weights";
    if (get_int(json, "forewarp_weights", 0) != FORMAT_VERSION)
        return "it was written by another version";
    get_device(json, &w->device);
    if (!target_find(w->device.target))
        return "its device has no target that is known";
    w->rows = (int)MIN(get_int(json, "rows", 0), INT32_MAX);
    w->rms = json_number_value(json_object_get(json, "rms"));
    const json_t *list = json_object_get(json, "weights");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(item, "property"));
        int p = name ? counts_find(name) : -1;
        double error = json_number_value(json_object_get(item, "error"));
        if (p < 0 || !json_is_number(json_object_get(item, "seconds")))
            return "its numbers are damaged";
        w->weight[p] = json_number_value(json_object_get(item, "seconds"));
        w->error[p] = error < 0 ? INFINITY : error;
        w->support[p] = (int)MIN(get_int(item, "support", 0), INT32_MAX);
    }
    return json_array_size(list) ? NULL : "it holds no weights";
}

static const char *load_path(Weights *w, const char *path, Buf *why)
{
    Buf text;
    json_error_t error;
    buf_init(&text);
    buf_clear(why);
    if (!file_read(path, &text)) {
        buf_puts(why, strerror(errno));
        buf_release(&text);
        return why->text;
    }
    json_t *json = json_loadb(text.text, text.len, 0, &error);
    const char *wrong = json ? load_json(w, json) : error.text;
    if (wrong)
        buf_puts(why, wrong);
    json_decref(json);
    buf_release(&text);
    return wrong ? why->text : NULL;
}

static bool is_meant(const DeviceInfo *d, const char *asked)
{
    return strcmp(d->id, asked) == 0 || strcmp(d->fingerprint, asked) == 0 ||
           (strlen(asked) > 2 && strcasestr(d->name, asked));
}

static bool load_stored(Weights *w, const char *asked, Arena *arena, Buf *why)
{
    const char *folder = weights_folder(arena);
    DIR *dir = opendir(folder);
    bool found = false;
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0)
            found =
                !load_path(w, arena_printf(arena, "%s/%s", folder, entry->d_name), why) &&
                is_meant(&w->device, asked);
    }
    if (dir)
        closedir(dir);
    return found;
}

bool weights_load(Weights *w, const char *path, const char *device, Diags *diags)
{
    Buf why;
    buf_init(&why);
    const char *wrong = path ? load_path(w, path, &why) : NULL;
    bool found = path ? !wrong : load_stored(w, device, diags->arena, &why);
    if (wrong)
        diag_error(diags, span_none, "M003", "cannot use %s: %s", path, wrong);
    else if (!found)
        diag_world(diags, "M004",
                   "no weights are stored for the device %s: run `forewarp calibrate` "
                   "on it, or name a file with --model",
                   device);
    buf_release(&why);
    return found;
}

// Prediction ------------------------------------------------------------------------------

static bool of_kind(int property, int first)
{
    return property >= first && property < first + COUNT_WIDTHS * COUNT_STRIDES;
}

// Of accesses: the nearest class of the same width, then the other widths by their bytes.
static int like_access(const Weights *w, int first, int property, double *factor)
{
    int width = (property - first) / COUNT_STRIDES,
        class = (property - first) % COUNT_STRIDES;
    for (int k = 0; k < COUNT_WIDTHS; k++)
        for (int distance = 0; distance < COUNT_STRIDES; distance++)
            for (int side = -1; side <= 1; side += 2) {
                int other = (width + k) % COUNT_WIDTHS, c = class + side * distance;
                int p = first + other * COUNT_STRIDES + c;
                if (c < 0 || c >= COUNT_STRIDES || !w->support[p])
                    continue;
                *factor = ldexp(1, width - other);
                return p;
            }
    return -1;
}

static int like_bank(const Weights *w, int property, double *factor)
{
    int degree = property - COUNT_LOCAL;
    for (int distance = 1; distance < COUNT_DEGREES; distance++)
        for (int side = -1; side <= 1; side += 2) {
            int d = degree + side * distance;
            if (d < 0 || d >= COUNT_DEGREES || !w->support[COUNT_LOCAL + d])
                continue;
            *factor = ldexp(1, degree - d);
            return COUNT_LOCAL + d;
        }
    return -1;
}

int weights_stand_in(const Weights *w, int property, double *factor)
{
    *factor = 1;
    if (w->support[property])
        return property;
    if (of_kind(property, COUNT_LOAD))
        return like_access(w, COUNT_LOAD, property, factor);
    if (of_kind(property, COUNT_STORE))
        return like_access(w, COUNT_STORE, property, factor);
    if (property >= COUNT_LOCAL && property <= COUNT_LOCAL_LAST)
        return like_bank(w, property, factor);
    if (property >= COUNT_ADD && property <= COUNT_SPECIAL_LAST &&
        (property - COUNT_ADD) % 2 == 1 && w->support[property - 1]) {
        *factor = 2; // a double for a float
        return property - 1;
    }
    return -1;
}

double weights_share(const DeviceInfo *device, const double count[PROPERTIES], int property)
{
    double groups = count[COUNT_GROUP] / fmax(count[COUNT_ONE], 1);
    bool once = property == COUNT_ARRAY || property == COUNT_GROUP || property == COUNT_ONE;
    return once || groups <= 0 ? 1 : fmax(1, device->compute_units / groups);
}

double weights_predict(const Weights *w, const double count[PROPERTIES],
                       double cost[PROPERTIES])
{
    double sum = 0;
    for (int p = 0; p < PROPERTIES; p++) {
        double factor = 1;
        int charged = count[p] != 0 ? weights_stand_in(w, p, &factor) : -1;
        factor *= weights_share(&w->device, count, p);
        cost[p] = charged < 0 ? 0 : factor * w->weight[charged] * count[p];
        sum += cost[p];
    }
    return sum;
}
