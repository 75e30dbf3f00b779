// SPDX-License-Identifier: Apache-2.0
//
// The programs of examples/, and their points as an H200 would be given them.

#ifndef FW_TEST_EXAMPLES_H
#define FW_TEST_EXAMPLES_H

#include "calibrate/describe.h"
#include "tune/tune.h"

#include <dirent.h>
#include <string.h>

// The path lives as long as the call.
typedef void TryExample(const char *path, void *user);

static inline void each_example(TryExample *try, void *user)
{
    DIR *dir = opendir("examples");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len < 4 || strcmp(entry->d_name + len - 3, ".fw") != 0)
            continue;
        char path[512];
        snprintf(path, sizeof path, "examples/%s", entry->d_name);
        try(path, user);
    }
    closedir(dir);
}

static inline Derivation *derive_for_h200(const Problem *problem, DeviceModel *model,
                                          Diags *diags)
{
    DeviceInfo info;
    assert_true(device_model_find("nvidia-h200", model));
    describe_model(model, &info);
    Derivation *derivation = derive_new(problem->bound, &info, diags);
    assert_non_null(derivation);
    return derivation;
}

// Point number i: the plain one, then random ones.
static inline void take_point(const Derivation *derivation, int i, Rng *rng, Point *point)
{
    if (i == 0)
        derive_plain(derivation, point);
    else
        space_sample(derive_space(derivation), rng, point);
}

#endif
