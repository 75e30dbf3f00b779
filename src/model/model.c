// SPDX-License-Identifier: Apache-2.0
//
// The table of kinds, and fitted models as JSON files: version, kind, names of the
// features, fingerprint of the device they were measured on, and what the kind keeps.
//
// It does not judge whether a model suits a device: the caller compares fingerprints.
#include "model/dataset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MODEL(name) extern const ModelKind model_##name;
#include "model/models.def"
#undef MODEL

static const ModelKind *const kinds[] = {
#define MODEL(name) &model_##name,
#include "model/models.def"
#undef MODEL
};

enum { FORMAT_VERSION = 1 };

const ModelKind *const *model_all(int *n)
{
    *n = COUNTOF(kinds);
    return kinds;
}

const ModelKind *model_find(const char *name)
{
    for (int i = 0; i < COUNTOF(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

Model *model_fit(const ModelKind *kind, const Matrix *x, const double *y, uint64_t seed,
                 const char *const *feature, const char *fingerprint)
{
    Model *model = xcalloc(1, sizeof *model);
    model->kind = kind;
    model->d = x->d;
    model->feature = xcalloc((size_t)x->d + 1, sizeof(char *));
    for (int i = 0; i < x->d; i++)
        model->feature[i] = xstrdup(feature[i]);
    model->fingerprint = xstrdup(fingerprint);
    model->fit = kind->fit(x, y, seed);
    return model;
}

void model_predict(const Model *model, const Matrix *x, double *y)
{
    if (x->d != model->d)
        BUG("a model of %d features asked about %d", model->d, x->d);
    model->kind->predict(model->fit, x, y);
}

bool model_save(const Model *model, const char *path, Diags *diags)
{
    json_t *features = json_array();
    for (int i = 0; i < model->d; i++)
        json_array_append_new(features, json_string(model->feature[i]));
    json_auto_t *json =
        json_pack("{s:i, s:s, s:o, s:s, s:o}", "forewarp_model", FORMAT_VERSION, "kind",
                  model->kind->name, "features", features, "fingerprint",
                  model->fingerprint, "fit", model->kind->save(model->fit));
    AUTO_FREE char *text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    bool ok = file_pack(path, text, strlen(text));
    if (!ok)
        diag_world(diags, "M001", "cannot write %s: %s", path, strerror(errno));
    return ok;
}

static bool load_features(Model *model, const json_t *json)
{
    const json_t *features = json_object_get(json, "features");
    if (!json_is_array(features) || json_array_size(features) > INT16_MAX)
        return false;
    int n = (int)json_array_size(features);
    model->feature = xcalloc((size_t)n + 1, sizeof(char *));
    for (; model->d < n; model->d++) {
        const char *name = json_string_value(json_array_get(features, (size_t)model->d));
        if (!name)
            return false;
        model->feature[model->d] = xstrdup(name);
    }
    return true;
}

// What is wrong with the file, or NULL.
static const char *load_json(Model *model, const json_t *json)
{
    const json_t *version = json_object_get(json, "forewarp_model");
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *fingerprint = json_string_value(json_object_get(json, "fingerprint"));
    if (!json_is_integer(version))
        return "it is not a saved model";
    if (json_integer_value(version) != FORMAT_VERSION)
        return "it was written by another version";
    model->kind = kind ? model_find(kind) : NULL;
    if (!model->kind)
        return "its kind of model is not known";
    if (!fingerprint || !load_features(model, json))
        return "its features or fingerprint are missing";
    model->fingerprint = xstrdup(fingerprint);
    model->fit = model->kind->load(json_object_get(json, "fit"), model->d);
    return model->fit ? NULL : "its numbers are damaged, or of another version";
}

Model *model_load(const char *path, Diags *diags)
{
    Buf text = buf_new();
    if (!dataset_text(path, &text, diags)) {
        buf_release(&text);
        return NULL;
    }
    json_error_t error;
    json_auto_t *json = json_loadb(text.text, text.len, 0, &error);
    buf_release(&text);
    Model *model = xcalloc(1, sizeof *model);
    const char *wrong = json ? load_json(model, json) : error.text;
    if (!wrong)
        return model;
    diag_error(diags, span_none, "M003", "cannot use %s: %s", path, wrong);
    model_free(model);
    return NULL;
}

void model_free(Model *model)
{
    if (!model)
        return;
    if (model->fit)
        model->kind->free(model->fit);
    for (int i = 0; i < model->d; i++)
        free(model->feature[i]);
    free(model->feature);
    free(model->fingerprint);
    free(model);
}
