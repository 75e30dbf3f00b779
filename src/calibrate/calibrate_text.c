// SPDX-License-Identifier: Apache-2.0
//
// Measured kernels as text: `# key: value` lines, a line of column names, a row each.
// Numbers are written so that reading gives the same bits.

#include "calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_names[CLASSES] = {"empty",      "stride-1", "scale-add",
                                                 "transpose",  "filled",   "product",
                                                 "arithmetic", "extra",    "test"};

// What a derivation asks of the device, with the range that is believed.
#define DEVICE_NUMBERS(X)                                                                  \
    X("units", compute_units, 1, 1 << 20)                                                  \
    X("warp", warp, 1, 64)                                                                 \
    X("line_bytes", line_bytes, 16, 4096)                                                  \
    X("max_group", max_group, 1, 1 << 20)                                                  \
    X("local_bytes", local_bytes, 0, 1 << 30)

// The columns of demands begin with this, so that none is named like a property.
static const char demand_prefix[] = "demand: ";
#define WAVES "demand: waves"

void calibration_write(Buf *out, const Calibration *c)
{
    bool used[PROPERTIES] = {false};
    for (int i = 0; i < c->rows.len; i++)
        for (int p = 0; p < PROPERTIES; p++)
            used[p] |= c->rows.at[i].count[p] != 0;
    buf_printf(out, "# device: %s\n# fingerprint: %s\n# id: %s\n# is_cpu: %d\n",
               c->device.name, c->device.fingerprint, c->device.id, c->device.is_cpu);
#define X(key, field, least, most)                                                         \
    buf_printf(out, "# " key ": %lld\n", (long long)c->device.field);
    DEVICE_NUMBERS(X)
#undef X
    buf_printf(out, "# version: %s\n", CODEGEN_VERSION);
    buf_puts(out, "class,kernel,n,point,time_ns");
    for (int p = 0; p < PROPERTIES; p++)
        if (used[p]) {
            buf_puts(out, ",\"");
            counts_name(out, p);
            buf_puts(out, "\"");
        }
    for (int d = 0; c->demands && d < DEMANDS; d++)
        buf_printf(out, ",%s%s", demand_prefix, demand_info[d].name);
    buf_puts(out, c->demands ? "," WAVES : "");
    VEC_EACH_REF(const Measured *, row, &c->rows) {
        buf_printf(out, "\n%s,%s,%lld,%s,%.9g", class_names[row->class], row->kernel,
                   (long long)row->n, row->point, row->time_ns);
        for (int p = 0; p < PROPERTIES; p++)
            if (used[p])
                buf_printf(out, ",%.17g", row->count[p]);
        for (int d = 0; c->demands && d < DEMANDS; d++)
            buf_printf(out, ",%.9g", row->demand.value[d]);
        if (c->demands)
            buf_printf(out, ",%.9g", row->demand.waves);
    }
    buf_putc(out, '\n');
}

// Reading -------------------------------------------------------------------------------

// Cuts the next field of the line off, quoted or not; NULL after the last.
static char *next_field(char **rest)
{
    char *at = *rest;
    if (!at)
        return NULL;
    bool quoted = *at == '"';
    char *end = quoted ? strchr(++at, '"') : strchr(at, ',');
    if (quoted && end) {
        *end++ = 0;
        end = *end == ',' ? end : NULL;
    }
    if (end)
        *end++ = 0;
    *rest = end;
    return at;
}

// The rest of the line if it begins with `# key: `.
static const char *value_of(const char *line, const char *key)
{
    size_t n = strlen(key);
    bool same = strncmp(line, "# ", 2) == 0 && strncmp(line + 2, key, n) == 0 &&
                strncmp(line + 2 + n, ": ", 2) == 0;
    return same ? line + 2 + n + 2 : NULL;
}

static void read_head(Calibration *c, const char *line)
{
    DeviceInfo *d = &c->device;
    const char *value;
    if ((value = value_of(line, "device")))
        snprintf(d->name, sizeof d->name, "%s", value);
    if ((value = value_of(line, "fingerprint")))
        snprintf(d->fingerprint, sizeof d->fingerprint, "%s", value);
    if ((value = value_of(line, "id")))
        snprintf(d->id, sizeof d->id, "%s", value);
    if ((value = value_of(line, "is_cpu")))
        d->is_cpu = *value == '1';
#define X(key, field, least, most)                                                         \
    if ((value = value_of(line, key))) {                                                   \
        long long number = strtoll(value, NULL, 10);                                       \
        d->field = (int)MIN(MAX(number, least), most);                                     \
    }
    DEVICE_NUMBERS(X)
#undef X
    for (int i = 0; i < 3; i++)
        d->max_item[i] = d->max_group;
}

// What each column holds: a property, COLUMN_DEMAND and more, or COLUMN_WAVES.
enum {
    COLUMNS_FIXED = 5,
    COLUMN_DEMAND = PROPERTIES,
    COLUMN_WAVES = COLUMN_DEMAND + DEMANDS,
    COLUMNS = COLUMNS_FIXED + COLUMN_WAVES + 1
};

static int column_meant(const char *name)
{
    size_t n = sizeof demand_prefix - 1;
    if (strcmp(name, WAVES) == 0)
        return COLUMN_WAVES;
    if (strncmp(name, demand_prefix, n) != 0)
        return counts_find(name);
    int demand = demand_find(name + n);
    return demand < 0 ? -1 : COLUMN_DEMAND + demand;
}

// Reads the names of the columns after the first five; false if one is unknown.
static bool read_columns(char *line, int *column, int *n)
{
    *n = 0;
    for (char *rest = line, *field; (field = next_field(&rest));)
        if (*n < COLUMNS) {
            column[*n] = *n < COLUMNS_FIXED ? 0 : column_meant(field);
            if (column[(*n)++] < 0)
                return false;
        }
    return *n >= COLUMNS_FIXED;
}

static void set_number(Measured *row, int column, double number)
{
    if (column < COLUMN_DEMAND)
        row->count[column] = number;
    else if (column < COLUMN_WAVES)
        row->demand.value[column - COLUMN_DEMAND] = number;
    else
        row->demand.waves = number;
}

// What nothing that is counted or timed exceeds, in whatever unit.
static const double NUMBER_MOST = 1e30;

static bool read_row(char *line, const int *column, int n, Arena *arena, Measured *row)
{
    *row = (Measured){.class = CLASSES, .demand.launches = 1};
    char *rest = line;
    for (int i = 0; i < n; i++) {
        char *field = next_field(&rest), *end = NULL;
        if (!field)
            return false;
        double number = strtod(field, &end);
        bool is_number = end != field && !*end && fabs(number) <= NUMBER_MOST;
        for (int k = 0; i == 0 && k < CLASSES; k++)
            if (strcmp(field, class_names[k]) == 0)
                row->class = (KernelClass)k;
        if (i == 1)
            row->kernel = arena_strdup(arena, field);
        else if (i == 2)
            row->n = strtoll(field, NULL, 10);
        else if (i == 3)
            row->point = arena_strdup(arena, field);
        else if (i == 4)
            row->time_ns = is_number ? number : 0;
        else if (i > 4 && is_number)
            set_number(row, column[i], number);
        if ((i == 2 || i >= 4) && !is_number)
            return false;
    }
    return !rest && row->class < CLASSES && row->time_ns >= 1 / NUMBER_MOST;
}

static bool read_text(char *text, Arena *arena, Calibration *c, int *line_number)
{
    int column[COLUMNS], n = 0;
    char *save = NULL;
    *line_number = 0;
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        ++*line_number;
        Measured row;
        if (*line == '#') {
            read_head(c, line);
        } else if (!n) {
            if (!read_columns(line, column, &n))
                return false;
            c->demands = n > COLUMNS_FIXED && column[n - 1] == COLUMN_WAVES;
        } else if (read_row(line, column, n, arena, &row)) {
            VEC_PUSH(arena, &c->rows, row);
            if (row.class == CLASS_EMPTY)
                c->launch_ns = fmin(c->launch_ns, row.time_ns);
        } else {
            return false;
        }
    }
    return c->rows.len > 0;
}

bool calibration_read(const char *path, Arena *arena, Calibration *c, Diags *diags)
{
    int line = 0;
    *c = (Calibration){.launch_ns = INFINITY};
    // Counts do not depend on it; a derivation wants one.
    snprintf(c->device.target, sizeof c->device.target, "%s",
             language_name[LANGUAGE_OPENCL]);
    AutoBuf text = buf_new();
    bool ok = file_read(path, FILE_DATA_MOST, &text) ||
              diag_world(diags, "M002", "cannot read %s: %s", path, text.text);
    ok = ok && (read_text(text.text, arena, c, &line) ||
                diag_error(diags, span_none, "M003",
                           "%s holds no measured kernels: line %d is wrong (numbers are at "
                           "most 1e30, and times above 0)",
                           path, line));
    c->launch_ns = isfinite(c->launch_ns) ? c->launch_ns : 0;
    return ok;
}
