// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer entry (make fuzz): any bytes as a program text. Reading, inferring, binding
// and printing must end with a program or with diagnostics, never with a crash, and a
// printed program must read as itself.

#include "ir/ir.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_again(Ir *ir, const Program *program, Diags *diags)
{
    Buf once, twice;
    buf_init(&once);
    buf_init(&twice);
    ir_print(&once, program);
    Source source = {"<printed>", once.text, once.len};
    Program *again = ir_parse(ir, &source, diags);
    if (!again)
        BUG("a printed program is not read:\n%s", once.text);
    ir_print(&twice, again);
    if (strcmp(once.text, twice.text) != 0)
        BUG("printed twice, two texts:\n%s\n---\n%s", once.text, twice.text);
    buf_release(&once);
    buf_release(&twice);
}

static void bind(Program *program, Diags *diags)
{
    Binding binding[8];
    int n = 0;
    for (; n < program->sizes.len && n < COUNTOF(binding); n++)
        binding[n] = (Binding){program->sizes.at[n].name, 8 + n};
    ir_bind(program, binding, n, diags);
}

static void show(const Diags *diags)
{
    Buf text;
    buf_init(&text);
    diags_print(&text, diags);
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Ir *ir = ir_new();
    Diags diags;
    diags_init(&diags, ir->arena);
    char *text = arena_strndup(ir->arena, (const char *)data, size);
    Source source = {"<fuzz>", text, size};
    Program *program = ir_parse(ir, &source, &diags);
    if (program) {
        print_again(ir, program, &diags);
        if (ir_infer(program, &diags))
            bind(program, &diags);
    }
    show(&diags);
    ir_free(ir);
    return 0;
}
