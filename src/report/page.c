// SPDX-License-Identifier: Apache-2.0
//
// The page of runs (report.h): a frame of HTML, the style, the records as JSON, and the
// scripts that draw them. Its own policy keeps a browser from loading anything else, and
// from running any other script: the nonce follows from the records.
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FEATURES_SHOWN = 12 };

static const char *const style[] = {
#include "report/page.css.inc"
};
static const char *const plot_script[] = {
#include "report/plot.js.inc"
};
static const char *const verdict_script[] = {
#include "report/verdict.js.inc"
};
static const char *const page_script[] = {
#include "report/page.js.inc"
};

static const char *const keywords[] = {
#define KEYWORD(words) words,
#define BUILTIN(words)
#define RESERVED(words)
#include "emit/reserved.def"
#undef KEYWORD
#undef BUILTIN
};

static const char *const builtins[] = {
#define KEYWORD(words)
#define BUILTIN(words) words,
#include "emit/reserved.def"
#undef KEYWORD
#undef BUILTIN
#undef RESERVED
};

static json_t *numbers(const double *value, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_finite(value[i]));
    return list;
}

static json_t *integers(const int *value, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(value[i]));
    return list;
}

// Names and numbers of the features that tell most of the time.
static json_t *best_features(const Analysis *a)
{
    Numbered rank[FEATURES];
    json_t *list = json_array();
    for (int f = 0; f < FEATURES; f++)
        rank[f] = (Numbered){-a->redundancy[f], f};
    sort_numbered(rank, FEATURES);
    for (int i = 0; i < FEATURES_SHOWN && a->feature.n >= 10 && rank[i].value < 0; i++)
        json_array_append_new(
            list, json_pack("[s, f]", feature_info[rank[i].number].name, -rank[i].value));
    return list;
}

static json_t *predictions(const Analysis *a)
{
    json_t *list = json_array();
    ARRAY_EACH_REF(const Prediction *, p, a->predicted, ANALYSIS_MODELS)
        if (p->model && a->nkernel > 1)
            json_array_append_new(list, json_pack("{s:s, s:b, s:o, s:o}", "model", p->model,
                                                  "is_time", p->is_time, "value",
                                                  numbers(p->value, a->nkernel), "spearman",
                                                  json_finite(p->spearman)));
    return list;
}

static json_t *intensities(const Analysis *a)
{
    json_t *list = json_array();
    for (int i = 0; i < a->feature.n; i++)
        json_array_append_new(list,
                              json_finite(matrix_row(&a->feature, i)[FEATURE_INTENSITY]));
    return list;
}

static json_t *analysis_json(const Analysis *a)
{
    int n = a->run->nparam;
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "importance", numbers(a->importance, n),
                  "order", integers(a->order, n), "explained", json_finite(a->explained),
                  "kernels", integers(a->kernel, a->nkernel), "features", best_features(a),
                  "predicted", predictions(a));
    if (a->feature.n)
        json_object_set_new(json, "intensity", intensities(a));
    if (a->unknown)
        json_object_set_new(json, "unknown", json_string(a->unknown));
    return json;
}

static json_t *page_json(const Analysis *const *of, int n, bool live)
{
    json_t *runs = json_array();
    for (int i = 0; i < n; i++) {
        json_t *run = run_json(of[i]->run);
        if (of[i]->ok)
            json_object_set_new(run, "analysis", analysis_json(of[i]));
        json_array_append_new(runs, run);
    }
    return json_pack("{s:o, s:b, s:I, s:{s:o, s:o}}", "runs", runs, "live", live, "written",
                     live ? (json_int_t)time(NULL) : 0, "words", "keywords",
                     json_texts(keywords, COUNTOF(keywords)), "builtins",
                     json_texts(builtins, COUNTOF(builtins)));
}

// Text that ends no element: < stands in strings only, where JSON has another name for it.
static void put_without_tags(Buf *out, const char *text, const char *instead)
{
    for (; *text; text++)
        if (*text == '<')
            buf_puts(out, instead);
        else
            buf_putc(out, *text);
}

static void put_lines(Buf *out, const char *const *line, int n)
{
    for (int i = 0; i < n; i++)
        buf_puts(out, line[i]);
}

void report_page(Buf *out, const Analysis *const *of, int n, bool live)
{
    json_auto_t *json = page_json(of, n, live);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)), nonce[17];
    hash_hex(hash_bytes(text, strlen(text), 0), nonce);
    buf_printf(out,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
               "style-src 'unsafe-inline'; img-src data:; script-src 'nonce-%s'\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<link rel=\"icon\" href=\"data:,\">\n<title>",
               nonce);
    put_without_tags(out, of[0]->run->problem, "&lt;");
    buf_puts(out, n > 1 ? " and others" : "");
    buf_puts(out, " \u2013 forewarp</title>\n<style>\n");
    put_lines(out, style, COUNTOF(style));
    buf_puts(out, "</style>\n</head>\n<body>\n<main>\n<h1>A run of forewarp</h1>\n<p>This "
                  "page is drawn by a script, which this browser does not run. The file "
                  "NAME" RUN_SUFFIX " has all that the page shows.</p>\n</main>\n"
                  "<div id=\"tip\" role=\"tooltip\" hidden></div>\n"
                  "<script type=\"application/json\" id=\"data\">");
    put_without_tags(out, text, "\\u003c");
    buf_printf(out, "</script>\n<script nonce=\"%s\">\n", nonce);
    put_lines(out, plot_script, COUNTOF(plot_script));
    buf_printf(out, "</script>\n<script nonce=\"%s\">\n", nonce);
    put_lines(out, verdict_script, COUNTOF(verdict_script));
    buf_printf(out, "</script>\n<script nonce=\"%s\">\n", nonce);
    put_lines(out, page_script, COUNTOF(page_script));
    buf_puts(out, "</script>\n</body>\n</html>\n");
    free(text);
}
