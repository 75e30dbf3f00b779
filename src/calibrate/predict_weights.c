// SPDX-License-Identifier: Apache-2.0
//
// Weights of a device: kept as JSON, and what they say of counts.

#include "calibrate/describe.h"
#include "calibrate/predict.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT_VERSION = 2 };

// Where --------------------------------------------------------------------------------

static const char *weights_folder(Arena *arena)
{
    Buf path = buf_new();
    user_folder(&path, "XDG_DATA_HOME", ".local/share");
    buf_puts(&path, "/weights");
    return buf_keep(&path, arena);
}

const char *weights_path(Arena *arena, const char *fingerprint)
{
    return arena_printf(arena, "%s/%s.json", weights_folder(arena), fingerprint);
}

// Saving -------------------------------------------------------------------------------

// What one of something costs: a property, or a demand.
static void push_cost(json_t *list, const char *what, const char *name, double seconds,
                      double error, int support)
{
    if (support)
        json_array_append_new(
            list, json_pack("{s:s, s:f, s:f, s:i}", what, name, "seconds", seconds, "error",
                            isfinite(error) ? error : -1, "support", support));
}

static json_t *overlap_json(const Overlap *o)
{
    json_t *list = json_array();
    for (int d = 0; d < o->d; d++)
        push_cost(list, "demand", demand_info[d].name, o->weight[d], o->error[d],
                  o->support[d]);
    return json_pack("{s:i, s:f, s:f, s:f, s:o}", "rows", o->rows, "rms", o->rms, "power",
                     o->power, "drain", o->drain, "weights", list);
}

static json_t *weights_json(const Weights *w)
{
    json_t *list = json_array();
    AutoBuf name = buf_new();
    for (int p = 0; p < PROPERTIES; p++) {
        buf_clear(&name);
        counts_name(&name, p);
        push_cost(list, "property", name.text, w->weight[p], w->error[p], w->support[p]);
    }
    json_t *json = json_pack("{s:i, s:i, s:f, s:o, s:o}", "forewarp_weights",
                             FORMAT_VERSION, "rows", w->rows, "rms", w->rms, "weights",
                             list, "overlap", overlap_json(&w->overlap));
    json_object_update_new(json, device_json(&w->device));
    return json;
}

bool weights_save(const Weights *w, const char *path, Diags *diags)
{
    json_auto_t *json = weights_json(w);
    AUTO_FREE char *text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    char *folder = xstrdup(path), *slash = strrchr(folder, '/');
    if (slash && slash != folder)
        *slash = 0;
    bool ok = (!slash || slash == folder || file_mkdirs(folder)) &&
              file_write(path, text, strlen(text));
    if (!ok)
        diag_world(diags, "M001", "cannot write %s: %s", path, strerror(errno));
    free(folder);
    return ok;
}

// Loading -------------------------------------------------------------------------------

static int64_t get_int(const json_t *json, const char *key, int64_t least)
{
    return MAX((int64_t)json_integer_value(json_object_get(json, key)), least);
}

// Reads what push_cost wrote; false if a name is not known, or a cost is no number.
static bool read_costs(const json_t *list, const char *what, int (*find)(const char *name),
                       double *seconds, double *error, int *support)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(item, what));
        int k = name ? find(name) : -1;
        double off = json_number_value(json_object_get(item, "error"));
        if (k < 0 || !json_is_number(json_object_get(item, "seconds")))
            return false;
        seconds[k] = json_number_value(json_object_get(item, "seconds"));
        error[k] = off < 0 ? INFINITY : off;
        support[k] = (int)MIN(get_int(item, "support", 0), INT32_MAX);
    }
    return true;
}

static bool get_overlap(const json_t *json, Overlap *o)
{
    const json_t *list = json_object_get(json, "weights");
    weights_parts(o);
    o->rows = (int)MIN(get_int(json, "rows", 0), INT32_MAX);
    o->rms = json_number_value(json_object_get(json, "rms"));
    o->power = fmax(json_number_value(json_object_get(json, "power")), 1);
    o->drain = fmax(json_number_value(json_object_get(json, "drain")), 0);
    if (!read_costs(list, "demand", demand_find, o->weight, o->error, o->support))
        return false;
    if (!json_array_size(list))
        o->d = 0;
    return true;
}

// What is wrong with it, or NULL.
static const char *load_json(Weights *w, const json_t *json)
{
    *w = (Weights){0};
    if (!json_is_integer(json_object_get(json, "forewarp_weights")))
        return "it holds no weights";
    if (get_int(json, "forewarp_weights", 0) != FORMAT_VERSION)
        return "it was written by another version";
    device_of_json(json, &w->device);
    if (!target_find(w->device.target))
        return "its device has no target that is known";
    w->rows = (int)MIN(get_int(json, "rows", 0), INT32_MAX);
    w->rms = json_number_value(json_object_get(json, "rms"));
    const json_t *list = json_object_get(json, "weights");
    if (!read_costs(list, "property", counts_find, w->weight, w->error, w->support) ||
        !get_overlap(json_object_get(json, "overlap"), &w->overlap))
        return "its numbers are damaged";
    return json_array_size(list) ? NULL : "it holds no weights";
}

static const char *load_path(Weights *w, const char *path, Buf *why)
{
    json_error_t error;
    Buf text = buf_new();
    buf_clear(why);
    if (!file_read(path, FILE_TEXT_MOST, &text)) {
        buf_puts(why, text.text);
        buf_release(&text);
        return why->text;
    }
    json_auto_t *json = json_loadb(text.text, text.len, 0, &error);
    const char *wrong = json ? load_json(w, json) : error.text;
    if (wrong)
        buf_puts(why, wrong);
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
    if (path && access(path, R_OK) != 0)
        return diag_world(diags, "M019", "cannot read %s: %s", path, strerror(errno));
    AutoBuf why = buf_new();
    const char *wrong = path ? load_path(w, path, &why) : NULL;
    bool found = path ? !wrong : load_stored(w, device, diags->arena, &why);
    if (wrong)
        diag_error(diags, span_none, "M003", "cannot use %s: %s", path, wrong);
    else if (!found)
        diag_world(diags, "M004",
                   "no weights are stored for the device %s: run `forewarp calibrate` "
                   "on it, or name a file with --model",
                   device);
    return found;
}

// Prediction ------------------------------------------------------------------------------

static bool of_kind(int property, int first)
{
    return property >= first && property < first + COUNT_WIDTHS * COUNT_STRIDES;
}

// The nearest class of accesses of the same width, then the other widths by their bytes.
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
    if (property >= COUNT_ADD && property <= COUNT_FUSED_LAST &&
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

// By demands ------------------------------------------------------------------------------

static double slower(double rate, double other, double otherwise)
{
    return rate > 0 && other > 0 ? rate / other : otherwise;
}

// Waits for memory take as long on every device.
static double slower_wait(int demand, double cycle)
{
    bool memory =
        demand == DEMAND_PHASE || demand == DEMAND_FETCH || demand == DEMAND_WRITE;
    return memory ? 1 : cycle;
}

void weights_scale(Weights *w, const DeviceInfo *to)
{
    DeviceModel a, b;
    describe_device(&w->device, &a);
    describe_device(to, &b);
    double cycle = slower(a.clock_mhz, b.clock_mhz, 1);
    double units = cycle * a.units / b.units;
    double factor[RESOURCES] = {[RESOURCE_LAUNCH] = 1,
                                [RESOURCE_GROUPS] = units,
                                [RESOURCE_FAR] = slower(a.bandwidth, b.bandwidth, units),
                                [RESOURCE_NEAR] = units,
                                [RESOURCE_CACHE] = units,
                                [RESOURCE_ISSUE] = units};
    for (int d = 0; d < w->overlap.d; d++) {
        Resource part = demand_info[d].resource;
        double by = part == RESOURCE_WAIT ? slower_wait(d, cycle)
                    : d == DEMAND_OPERATE ? slower(a.gflops, b.gflops, units)
                                          : factor[part];
        w->overlap.weight[d] *= by;
        w->overlap.error[d] *= by;
    }
    if (!strstr(w->device.name, to->name))
        snprintf(w->from, sizeof w->from, "%s", w->device.name);
    w->device = *to;
}

void weights_parts(Overlap *o)
{
    static const int part[RESOURCES] = {[RESOURCE_LAUNCH] = PART_ADDED,
                                        [RESOURCE_GROUPS] = PART_START,
                                        [RESOURCE_FAR] = 0,
                                        [RESOURCE_NEAR] = 1,
                                        [RESOURCE_CACHE] = 2,
                                        [RESOURCE_ISSUE] = 2,
                                        [RESOURCE_WAIT] = 3};
    *o = (Overlap){.d = DEMANDS};
    for (int d = 0; d < DEMANDS; d++)
        o->part[d] = part[demand_info[d].resource];
}

// In a run of few waves the last one is a large share; part of a wave costs as much as one.
double demand_idle(const Demand *demand)
{
    return 1 / fmax(demand->waves, 0.5);
}

double weights_overlap(const Weights *w, const Demand *demand, int n, double cost[DEMANDS])
{
    double sum = 0, one[OVERLAP_COLUMNS];
    memset(cost, 0, sizeof *cost * DEMANDS);
    for (int k = 0; k < n; k++) {
        double launches = demand[k].launches;
        sum += launches *
               overlap_predict(&w->overlap, demand[k].value, demand_idle(&demand[k]), one);
        for (int d = 0; d < DEMANDS; d++)
            cost[d] += launches * one[d];
    }
    return sum;
}

bool predict_unit(const Weights *w, const Unit *unit, const FeatureSetting *setting,
                  Arena *arena, double *seconds)
{
    double count[PROPERTIES], cost[PROPERTIES], part[DEMANDS];
    Demand *demand;
    int n = w->overlap.d ? demand_unit(unit, setting, arena, &demand, NULL) : 0;
    if (n)
        *seconds = weights_overlap(w, demand, n, part);
    else if (counts_numbers(unit, setting, count))
        *seconds = weights_predict(w, count, cost);
    else
        return false;
    return true;
}
