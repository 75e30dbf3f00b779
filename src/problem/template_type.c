// SPDX-License-Identifier: Apache-2.0
//
// The types of arguments by their names, and structs as C and C++ compilers lay them out.

#include "problem/template.h"

// CUDA's vectors of three lie close, OpenCL's have room for four.
static int alignment(const TemplateReader *r, const Member *member)
{
    bool cuda = language_is(r->t->language, LANGUAGE_CUDA);
    if (cuda && member->width == 3)
        return member->element->bytes;
    int bytes = member->element->bytes * (member->width == 3 ? 4 : member->width);
    return cuda ? MIN(bytes, 16) : bytes;
}

static bool add_member(const TemplateReader *r, const char *where, const char *type,
                       TemplateArg *arg)
{
    Member member = {.element = element_find(type, &member.width)};
    if (!member.element)
        return reader_wrong(r, where,
                            "`%s` is not an element type; they are char, uchar, short, "
                            "ushort, int, uint, long, ulong, half, float, double, and "
                            "these with 2, 3, 4, 8 or 16 after them; a list of types is a "
                            "struct",
                            type);
    VEC_PUSH(r->t->arena, &arg->member, member);
    return true;
}

// A struct of numbers of one type without gaps is that many of them; else it is its bytes.
static void choose_element(TemplateArg *arg, int bytes)
{
    const Element *first = arg->member.at[0].element;
    int lanes = 0;
    for (int i = 0; i < arg->member.len; i++)
        lanes += arg->member.at[i].element == first ? arg->member.at[i].width : bytes;
    bool whole = lanes * first->bytes == bytes;
    arg->element = whole ? first : element_find("uchar", &arg->width);
    arg->width = whole ? lanes : bytes;
}

// Members as a C compiler lays them out.
static void lay_out(const TemplateReader *r, TemplateArg *arg)
{
    int at = 0, most = 1;
    Buf text = buf_new();
    for (int i = 0; i < arg->member.len; i++) {
        Member *member = &arg->member.at[i];
        int to = alignment(r, member);
        bool four = to > member->element->bytes && member->width == 3;
        member->offset = (at + to - 1) / to * to;
        at = member->offset + member->element->bytes * (four ? 4 : member->width);
        most = MAX(most, to);
        buf_printf(&text, "%s%s", i ? ", " : "(", member->element->name);
        if (member->width > 1)
            buf_printf(&text, "%d", member->width);
    }
    buf_putc(&text, ')');
    arg->type = buf_keep(&text, r->t->arena);
    choose_element(arg, (at + most - 1) / most * most);
}

enum { MEMBERS_MOST = 256 };

bool reader_type(const TemplateReader *r, const char *where, const json_t *type,
                 TemplateArg *arg)
{
    size_t n = json_array_size(type);
    for (size_t i = 0; i < n; i++) {
        const char *member = json_string_value(json_array_get(type, i));
        if (!add_member(r, arena_printf(r->t->arena, "%s[%zu]", where, i),
                        member ? member : "", arg))
            return false;
    }
    if (n > MEMBERS_MOST)
        return reader_wrong(r, where, "a struct of at most %d members", MEMBERS_MOST);
    if (n > 0) {
        lay_out(r, arg);
        return true;
    }
    arg->type =
        arena_strdup(r->t->arena, json_is_string(type) ? json_string_value(type) : "");
    if (!add_member(r, where, arg->type, arg))
        return false;
    arg->element = arg->member.at[0].element;
    arg->width = arg->member.at[0].width;
    if (arg->width == 3 && language_is(r->t->language, LANGUAGE_OPENCL))
        arg->width = 4;
    return true;
}
