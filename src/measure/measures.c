// SPDX-License-Identifier: Apache-2.0
//
// What trials tell besides times, as text and back: "registers=32 energy=0.0125". The same
// text goes between processes, to the store and to records.
#include "measure/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const MeasureRow measure_row[MEASURES] = {
#define MEASURE(id, name, unit, doc) {name, unit, doc},
#include "measure/measures.def"
#undef MEASURE
};

double measure_of(const Measures *measures, Measure what)
{
    return measures->told & (1u << what) ? measures->of[what] : NAN;
}

void measure_tell(Measures *measures, Measure what, double value)
{
    measures->told |= 1u << what;
    measures->of[what] = value;
}

void measures_print(Buf *out, const Measures *measures)
{
    for (int i = 0, n = 0; i < MEASURES; i++)
        if (measures->told & (1u << i))
            buf_printf(out, "%s%s=%.9g", n++ ? " " : "", measure_row[i].name,
                       measures->of[i]);
}

// What it does not know it passes over: others may have written it.
void measures_parse(Measures *measures, const char *text)
{
    *measures = (Measures){0};
    while (text && *text) {
        size_t name = strcspn(text, "= ");
        for (int i = 0; i < MEASURES; i++) {
            double value = text[name] == '=' ? strtod(text + name + 1, NULL) : NAN;
            if (strlen(measure_row[i].name) == name && isfinite(value) &&
                strncmp(measure_row[i].name, text, name) == 0)
                measure_tell(measures, (Measure)i, value);
        }
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
}
