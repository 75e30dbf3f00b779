// SPDX-License-Identifier: Apache-2.0
//
// The passes over a kernel, in their order.

#include "kir/passes.h"

// After each pass: collects what the kernel uses, and verifies it.
static bool check_pass(const Pass *pass, Kernel *kernel, const char *name, Diags *diags)
{
    const KernelOptions *options = pass->options;
    if (options->quick)
        return true;
    kernel_collect(pass, kernel);
    if (options->observe)
        options->observe(options->user, name, kernel);
    return kernel_verify_pass(pass->ctx, kernel, diags);
}

bool kernel_finish(Pass *pass, Kernel *kernel, Diags *diags)
{
    const KernelOptions *options = pass->options;
    // Strips are copied by all items of a group, which wait for each other.
    const bool tasks = !options->strip && kernel_has_tasks(kernel);
    const bool loops = options->item_loops && (!options->tasks || tasks);
    kernel_collect(pass, kernel);
    bool ok = check_pass(pass, kernel, "start", diags);
#define PASS(name, condition)                                                              \
    if (ok && (condition)) {                                                               \
        pass_##name(pass, kernel);                                                         \
        ok = check_pass(pass, kernel, #name, diags);                                       \
    }
#include "kir/passes.def"
#undef PASS
    if (options->quick)
        kernel_collect(pass, kernel);
    return ok && (options->quick || kernel_verify(pass->ctx, kernel, diags));
}
