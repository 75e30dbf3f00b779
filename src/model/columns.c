// SPDX-License-Identifier: Apache-2.0
//
// Which columns of an exploration a model sees: those of Table 1 of 000, or all of them
// and some counts of a work-item over the outputs it computes, which say the same of few
// work-items with much to do as of many with little. Such a column is named
// `loop_bodies/outputs`, and any saved model that names it can be asked again.
#include "model/dataset.h"

#include <string.h>

const char *const column_set_name[COLUMN_SETS] = {"paper", "all"};

static const char *const launch_name[] = {"global0", "global1", "global2",
                                          "local0",  "local1",  "local2"};

static const char *const ratio_name[] = {"global_loads/outputs", "global_stores/outputs",
                                         "local_loads/outputs",  "local_stores/outputs",
                                         "barriers/outputs",     "ifs/outputs",
                                         "loop_bodies/outputs"};

// The feature of a column that is not a ratio; -1 if it is none of ours.
static int feature_of(const char *name, size_t len)
{
    for (int i = 0; i < FEATURES; i++) {
        const char *own = i < COUNTOF(launch_name) ? launch_name[i] : feature_info[i].name;
        if (strlen(own) == len && memcmp(own, name, len) == 0)
            return i;
    }
    return -1;
}

int column_feature(const char *name)
{
    return feature_of(name, strlen(name));
}

static double ratio(double above, double below)
{
    return below > 0 ? above / below : above;
}

bool column_value(const char *name, const double feature[FEATURES], double *value)
{
    const char *slash = strchr(name, '/');
    size_t len = slash ? (size_t)(slash - name) : strlen(name);
    int above = feature_of(name, len);
    int below = slash ? feature_of(slash + 1, strlen(slash + 1)) : above;
    if (above < 0 || below < 0)
        return false;
    *value = slash ? ratio(feature[above], feature[below]) : feature[above];
    return true;
}

static int column_of(const Dataset *data, const char *name, size_t len)
{
    for (int i = 0; i < data->d; i++)
        if (strlen(data->feature[i]) == len && memcmp(data->feature[i], name, len) == 0)
            return i;
    return -1;
}

static bool is_wanted(const char *name, ColumnSet set)
{
    int feature = column_feature(name);
    return set == COLUMNS_ALL || feature < FEATURES_PAPER;
}

// Where a column comes from; below is -1 for one that is taken as it is.
typedef struct {
    const char *name;
    int above, below;
} Column;

static int choose(const Dataset *data, ColumnSet set, Column *column)
{
    int n = 0;
    for (int i = 0; i < data->d; i++)
        if (is_wanted(data->feature[i], set))
            column[n++] = (Column){data->feature[i], i, -1};
    for (int i = 0; i < COUNTOF(ratio_name) && set == COLUMNS_ALL; i++) {
        const char *name = ratio_name[i], *slash = strchr(name, '/');
        int above = column_of(data, name, (size_t)(slash - name));
        int below = column_of(data, slash + 1, strlen(slash + 1));
        if (above >= 0 && below >= 0 && column_of(data, name, strlen(name)) < 0)
            column[n++] = (Column){name, above, below};
    }
    return n;
}

Dataset *dataset_columns(const Dataset *data, ColumnSet set, Arena *arena)
{
    Column *column = NEW_ARRAY(arena, Column, data->d + COUNTOF(ratio_name));
    Dataset *some = arena_copy(arena, data, sizeof(Dataset));
    some->d = choose(data, set, column);
    some->feature = NEW_ARRAY(arena, const char *, some->d);
    some->x =
        (Matrix){data->n, some->d, NEW_ARRAY(arena, double, (int64_t)data->n * some->d)};
    for (int c = 0; c < some->d; c++)
        some->feature[c] = column[c].name;
    for (int i = 0; i < data->n; i++) {
        const double *from = matrix_row(&data->x, i);
        for (int c = 0; c < some->d; c++)
            matrix_row(&some->x, i)[c] =
                column[c].below < 0 ? from[column[c].above]
                                    : ratio(from[column[c].above], from[column[c].below]);
    }
    return some;
}
