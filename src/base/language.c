// SPDX-License-Identifier: Apache-2.0
//
// The table of languages, from languages.def.

#include "base/base.h"

#include <string.h>

const char *const language_name[LANGUAGES] = {
#define LANGUAGE(id, name) [LANGUAGE_##id] = name,
#include "base/languages.def"
#undef LANGUAGE
};

bool language_is(const char *name, Language language)
{
    return strcmp(name, language_name[language]) == 0;
}
