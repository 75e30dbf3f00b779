// SPDX-License-Identifier: Apache-2.0
//
// Measured kernels as text: `# key: value` lines, a line of column names, a row each.
// Numbers are written so that reading gives the same bits.

#include "plan/calibrate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_names[CLASSES] = {"empty",      "stride-1", "scale-add",
                                                 "transpose",  "filled",   "product",
                                                 "arithmetic", "extra",    "test"};

void calibration_write(Buf *out, const Calibration *c)
{
    bool used[PROPERTIES] = {false};
    for (int i = 0; i < c->rows.len; i++)
        for (int p = 0; p < PROPERTIES; p++)
            used[p] |= c->rows.at[i].count[p] != 0;
    buf_printf(out, "# device: %s\n# fingerprint: %s\n# id: %s\n# is_cpu: %d\n",
               c->device.name, c->device.fingerprint, c->device.id, c->device.is_cpu);
    buf_printf(out, "# version: %s\n", CODEGEN_VERSION);
    buf_puts(out, "class,kernel,n,point,time_ns");
    for (int p = 0; p < PROPERTIES; p++)
        if (used[p]) {
            buf_puts(out, ",\"");
            counts_name(out, p);
            buf_puts(out, "\"");
        }
    for (int i = 0; i < c->rows.len; i++) {
        const Measured *row = &c->rows.at[i];
        buf_printf(out, "\n%s,%s,%lld,%s,%.9g", class_names[row->class], row->kernel,
                   (long long)row->n, row->point, row->time_ns);
        for (int p = 0; p < PROPERTIES; p++)
            if (used[p])
                buf_printf(out, ",%.17g", row->count[p]);
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

static void read_head(Calibration *c, const char *line)
{
    static const char device[] = "# device: ", print[] = "# fingerprint: ", id[] = "# id: ";
    DeviceInfo *d = &c->device;
    if (strncmp(line, device, strlen(device)) == 0)
        snprintf(d->name, sizeof d->name, "%s", line + strlen(device));
    if (strncmp(line, print, strlen(print)) == 0)
        snprintf(d->fingerprint, sizeof d->fingerprint, "%s", line + strlen(print));
    if (strncmp(line, id, strlen(id)) == 0)
        snprintf(d->id, sizeof d->id, "%s", line + strlen(id));
    d->is_cpu |= strcmp(line, "# is_cpu: 1") == 0;
}

// The property of each column after the first five; false if one is unknown.
static bool read_columns(char *line, int *property, int *n)
{
    *n = 0;
    for (char *rest = line, *field; (field = next_field(&rest));)
        if (*n < PROPERTIES + 5) {
            property[*n] = *n < 5 ? 0 : counts_find(field);
            if (property[(*n)++] < 0)
                return false;
        }
    return *n >= 5;
}

static bool read_row(char *line, const int *property, int n, Arena *arena, Measured *row)
{
    *row = (Measured){.class = CLASSES};
    char *rest = line;
    for (int i = 0; i < n; i++) {
        char *field = next_field(&rest), *end = NULL;
        if (!field)
            return false;
        double number = strtod(field, &end);
        bool is_number = end != field && !*end && isfinite(number);
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
            row->count[property[i]] = number;
        if ((i == 2 || i >= 4) && !is_number)
            return false;
    }
    return !rest && row->class < CLASSES && row->time_ns > 0;
}

static bool read_text(char *text, Arena *arena, Calibration *c, int *line_number)
{
    int property[PROPERTIES + 5], n = 0;
    char *save = NULL;
    *line_number = 0;
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        ++*line_number;
        Measured row;
        if (*line == '#') {
            read_head(c, line);
        } else if (!n) {
            if (!read_columns(line, property, &n))
                return false;
        } else if (read_row(line, property, n, arena, &row)) {
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
    Buf text;
    int line = 0;
    *c = (Calibration){.launch_ns = INFINITY};
    buf_init(&text);
    bool ok = file_read(path, &text) ||
              diag_world(diags, "M002", "cannot read %s: %s", path, strerror(errno));
    ok = ok && (read_text(text.text, arena, c, &line) ||
                diag_error(diags, span_none, "M003",
                           "%s holds no measured kernels: line %d is wrong", path, line));
    c->launch_ns = isfinite(c->launch_ns) ? c->launch_ns : 0;
    buf_release(&text);
    return ok;
}
