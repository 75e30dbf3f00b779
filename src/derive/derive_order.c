// SPDX-License-Identifier: Apache-2.0
//
// --math strict: the order of folds and prefixes is the program's. A few parameters, which
// parameters.def names, decide the order in which a point folds. They get the values of the
// plain point of one fixed device, whatever the actual device is, so that all remaining
// points fold in the same order. The other parameters move operations but do not change
// them.

#include "derive/derive_parts.h"

#include <stdlib.h>
#include <string.h>

// A GPU of which every device can do what its plain points say.
static const DeviceInfo usual_device = {.target = "opencl",
                                        .max_group = 256,
                                        .max_item = {256, 256, 64},
                                        .local_bytes = 48 << 10,
                                        .lanes = 32};

const ParameterInfo parameter_info[] = {
#define PARAMETER(text, suffix, order, doc) {text, suffix, ORDER_##order, doc},
#include "derive/parameters.def"
#undef PARAMETER
};
const int parameters = COUNTOF(parameter_info);

bool may_share_pass(const Derivation *d, const Expr *fold)
{
    return folds_together(fold) && (d->program->math != MATH_STRICT || !order_shows(fold));
}

// Do the items of a group share a fold? Then for how many, and how many neighbours each, is
// part of the order: as many as the plain point has, however many a group has.
static bool is_shared(const Derivation *d, const Point *point)
{
    bool prefix = space_find(d->space, "share") >= 0 && derive_param(d, point, "share") > 0;
    return prefix || by_groups(d, point);
}

// One that this space lacks is as its first value says.
static bool settle(Derivation *d, const Derivation *usual, const Point *plain,
                   const char *name, Diags *diags)
{
    int own = space_find(d->space, name), its = space_find(usual->space, name);
    int choice = its < 0 ? 0 : plain->choice[its];
    if (own < 0 && choice == 0)
        return true;
    const Space *space = its < 0 ? d->space : usual->space;
    const int number = its < 0 ? own : its;
    AutoBuf value = buf_new(), text = buf_new();
    space_value_print(&value, space, number, choice);
    const char *quote = space_param(space, number)->label ? "'" : "";
    buf_printf(&text, "%s == %s%s%s", name, quote, value.text, quote);
    OrderParam *param = &d->order[d->norder++];
    snprintf(param->name, sizeof param->name, "%s", name);
    snprintf(param->value, sizeof param->value, "%s", value.text);
    bool ok = own >= 0 && space_constrain(d->space, text.text, diags);
    if (own < 0)
        diag_error(diags, d->program->main->span, "P011",
                   "--math strict folds with %s, for which %s has too little local memory",
                   text.text, d->device.name);
    return ok;
}

// The parameter whose value is to be one for all points; false: there is none. parts: folds
// have some.
static bool to_settle(const Derivation *d, const ParameterInfo *info, bool parts,
                      char *name, size_t size)
{
    snprintf(name, size, "%s%s", info->name, info->suffix[0] == 'x' ? "x" : "");
    return info->order == ORDER_FOLD ||
           (info->order == ORDER_ITEMS && d->shape.reduction) ||
           (info->order == ORDER_EACH && !d->items) ||
           (info->order == ORDER_PARTS && parts && space_find(d->space, name) >= 0) ||
           (info->order == ORDER_KEYS && d->shape.keyed.shows);
}

void settle_order(Derivation *d, Diags *diags)
{
    Point plain;
    bool ok = true;
    Derivation *usual = derive_open(d->program, &usual_device, diags);
    if (!usual)
        return;
    derive_plain(usual, &plain);
    if (!usual->shape.reduction && is_shared(usual, &plain)) {
        d->items = derive_number(usual, &plain, "l", 0);
        d->each = derive_param(usual, &plain, "lanes");
    }
    const bool parts = derive_param(usual, &plain, "parts") > 1;
    char name[sizeof d->order->name];
    for (int i = 0; ok && i < parameters; i++)
        if (to_settle(d, &parameter_info[i], parts, name, sizeof name))
            ok = settle(d, usual, &plain, name, diags);
    if (ok && space_find(d->space, "mx") >= 0) // of sums in the machine's order
        space_constrain(d->space, "product != 'matrix'", diags);
    derive_free(usual);
}

void order_plain(const Derivation *d, Point *point)
{
    for (int i = 0; i < d->norder; i++)
        space_set(d->space, point, d->order[i].name, d->order[i].value);
}

bool order_has(const Derivation *d, const char *name, int64_t value)
{
    for (int i = 0; i < d->norder; i++)
        if (strcmp(d->order[i].name, name) == 0)
            return strtoll(d->order[i].value, NULL, 10) == value;
    return true;
}
