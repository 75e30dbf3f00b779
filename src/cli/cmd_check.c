// SPDX-License-Identifier: Apache-2.0
//
// forewarp check: is the program right, and what does it take and give?

#include "cli/cli.h"

#include "evaluate/shape.h"
#include "problem/template.h"

static json_t *type_json(const char *name, const Type *type)
{
    AutoBuf text = buf_new();
    type_print(&text, type);
    json_t *shape = json_array();
    for (; type->kind == T_ARRAY; type = type->elem) {
        int64_t value;
        AutoBuf len = buf_new();
        arith_print(&len, type->len);
        json_array_append_new(shape, arith_is_const(type->len, &value)
                                         ? json_integer(value)
                                         : json_string(len.text));
    }
    AutoBuf elem = buf_new();
    type_print(&elem, type);
    return json_pack("{s:s, s:s, s:s, s:o}", "name", name, "type", text.text, "element",
                     elem.text, "shape", shape);
}

static json_t *program_json(const Problem *problem, const Program *program)
{
    json_t *sizes = json_array(), *inputs = json_array(), *outputs = json_array();
    VEC_EACH_REF(const SizeDecl *, size, &problem->program->sizes) {
        json_t *row = json_pack("{s:s, s:b}", "name", size->name, "generic", size->generic);
        const Binding *bound =
            binding_find(problem->binding, problem->nbinding, size->name);
        if (bound)
            json_object_set_new(row, "value", json_integer(bound->value));
        json_array_append_new(sizes, row);
    }
    const Function *main = program->main;
    for (int i = 0; i < main->nparam; i++)
        json_array_append_new(inputs,
                              type_json(main->params[i]->name, main->params[i]->type));
    const Type *result = main->body->type;
    bool many = result->kind == T_TUPLE;
    for (int i = 0; i < (many ? result->n : 1); i++)
        json_array_append_new(outputs, type_json("out", many ? result->item[i] : result));
    return json_pack("{s:s, s:o, s:o, s:o}", "name", problem->name, "sizes", sizes,
                     "inputs", inputs, "outputs", outputs);
}

static void print_program(const Program *program)
{
    const Function *main = program->main;
    AutoBuf text = buf_new();
    buf_printf(&text, "%s\n", main->name);
    for (int i = 0; i < main->nparam; i++) {
        buf_printf(&text, "  in   %s: ", main->params[i]->name);
        type_print(&text, main->params[i]->type);
        buf_putc(&text, '\n');
    }
    buf_puts(&text, "  out  ");
    type_print(&text, main->body->type);
    for (int i = 0; i < program->conditions.len; i++)
        buf_printf(&text, "\n  needs: %s", program->conditions.at[i].why);
    StencilShape shape;
    if (stencil_shape(program, &shape))
        buf_printf(
            &text, "\n  stencil of %d point%s in %d dimension%s, density %.3g%s%s",
            shape.points, shape.points > 1 ? "s" : "", shape.dims,
            shape.dims > 1 ? "s" : "", shape.density, shape.unique ? ", unlike in " : "",
            shape.unique ? (const char *const[]){"x", "y", "z"}[shape.unique - 1] : "");
    puts(text.text);
}

// Templates ---------------------------------------------------------------------------

static const char *const access_name[] = {
    [ACCESS_IN] = "in", [ACCESS_OUT] = "out", [ACCESS_INOUT] = "inout"};

static void print_arg(const TemplateArg *arg)
{
    if (arg->local) {
        printf("  local  %s: [%s]%s", arg->name, arg->local, arg->type);
    } else if (arg->values.len) {
        printf("  in     %s: %s =", arg->name, arg->type);
        for (int i = 0; i < arg->values.len; i++)
            printf("%s %s", i ? "," : "", arg->values.at[i]);
    } else {
        printf("  %-5s  %s: ", access_name[arg->access], arg->name);
        for (int d = 0; d < arg->ndim; d++)
            printf("[%lld]", (long long)arg->length[d]);
        printf("%s%s", arg->type, arg->image ? " image" : "");
        if (arg->symbol)
            printf(" in %s", arg->symbol);
    }
    printf("%s%s\n", arg->when ? "  if " : "", arg->when ? arg->when : "");
}

static void print_template(const Problem *problem)
{
    const Template *t = problem->template;
    printf("%s, %s\n", problem_label(problem), t->language);
    for (int i = 0; i < t->arg.len; i++)
        print_arg(&t->arg.at[i]);
    printf("  space  %.0f points of %.0f\n  plain  %s\n", space_count(t->space),
           space_raw_count(t->space), point_text(t->space, &t->plain, t->arena));
}

static json_t *arg_json(const TemplateArg *arg)
{
    json_t *shape = json_array();
    for (int d = 0; d < arg->ndim; d++)
        json_array_append_new(shape, json_integer(arg->length[d]));
    return json_pack("{s:s, s:s, s:s, s:o, s:b}", "name", arg->name, "type", arg->type,
                     "access",
                     access_name[template_is_array(arg) ? arg->access : ACCESS_IN], "shape",
                     shape, "image", arg->image);
}

static json_t *template_json(const Problem *problem)
{
    const Template *t = problem->template;
    json_t *args = json_array(), *sizes = json_object();
    for (int i = 0; i < t->arg.len; i++)
        json_array_append_new(args, arg_json(&t->arg.at[i]));
    for (int i = 0; i < problem->nbinding; i++)
        json_object_set_new(sizes, problem->binding[i].name,
                            json_integer(problem->binding[i].value));
    return json_pack("{s:s, s:s, s:o, s:o, s:f, s:f}", "name", problem->name, "language",
                     t->language, "sizes", sizes, "arguments", args, "points",
                     space_count(t->space), "raw_points", space_raw_count(t->space));
}

static int check_template(Options *o, const Problem *problem)
{
    if (cli_prints(o))
        print_template(problem);
    return cli_json(o, template_json(problem)) ? 0 : 1;
}

// Scripts -----------------------------------------------------------------------------

// Prints the calls of one instance.
static void print_script(const Script *script)
{
    printf("%s, %d call%s of an instance\n", script->name, script->ncall,
           script->ncall == 1 ? "" : "s");
    for (int out = 0; out < 2; out++)
        for (int i = 0; i < (out ? script->noutput : script->ninput); i++) {
            const Elem *elem = &script->elem[out ? script->output[i] : i];
            AutoBuf text = buf_new();
            type_print(&text, elem->type);
            printf("  %-3s  %s: %s%s\n", out ? "out" : "in", elem->name, text.text,
                   elem->is_uniform ? ", the same for all" : "");
        }
}

static json_t *elems_json(const Script *script, bool out)
{
    json_t *list = json_array();
    for (int i = 0; i < (out ? script->noutput : script->ninput); i++) {
        const Elem *elem = &script->elem[out ? script->output[i] : i];
        json_t *json = type_json(elem->name, elem->type);
        json_object_set_new(json, "uniform", json_boolean(elem->is_uniform));
        json_array_append_new(list, json);
    }
    return list;
}

// T is not asked for: nothing depends on how many instances there are.
static int check_script(Options *o, const Problem *problem)
{
    bool ok;
    Script *script = o->script = script_parse(problem->source.name, problem->source.text,
                                              o->binding, o->nbinding, &o->diags, &ok);
    if (!ok)
        return 2;
    if (cli_prints(o))
        print_script(script);
    return cli_json(o, json_pack("{s:s, s:i, s:o, s:o}", "name", script->name, "calls",
                                 script->ncall, "inputs", elems_json(script, false),
                                 "outputs", elems_json(script, true)))
               ? 0
               : 1;
}

int cmd_check(Options *o)
{
    bool script = path_is_script(o->file);
    Problem *problem =
        cli_problem(o, o->nbinding > 0 && !script ? SIZES_OPEN : SIZES_LATER);
    if (!problem)
        return 2;
    if (script)
        return check_script(o, problem);
    if (problem->template)
        return problem->template->space ||
                       problem_bind(problem, o->binding, o->nbinding, &o->diags)
                   ? check_template(o, problem)
                   : 2;
    const Program *program = problem->bound ? problem->bound : problem->program;
    if (problem->bound && !problem_spans(problem) &&
        !problem_never_refused(problem, &o->diags))
        return 2;
    if (cli_prints(o))
        print_program(program);
    bool ok = cli_json(o, program_json(problem, program));
    return ok ? 0 : 1;
}
