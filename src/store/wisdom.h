// SPDX-License-Identifier: Apache-2.0
//
// wisdom: the best plan of each session of a store as text, to be kept, read and carried to
// another machine: a JSON object a line, the first of them a head (doc/wisdom.md).
//
//   source  the word and its use: FFTW (Frigo and Johnson, Proc. IEEE 93(2), 2005); unlike
//           there a plan says of which device it is, how it was found and how fast it was

#ifndef FW_STORE_WISDOM_H
#define FW_STORE_WISDOM_H

#include "store/store.h"

typedef VEC(StoreBest) Wisdom; // texts and array: an arena's; session is not set

enum { WISDOM_FORMAT = 1 };

// Can it be a plan at all: texts of one line in UTF-8, a time that something can take? What
// it says of the kernel is another matter (plan_find).
bool wisdom_plausible(const StoreBest *plan);
// Those of the store that are plausible, and that a text can hold; false with a diagnostic.
bool wisdom_load(Store *store, Arena *arena, Wisdom *wisdom, Diags *diags);
// Reads a text; false with a diagnostic at the line that is wrong.
bool wisdom_parse(const Source *source, Arena *arena, Wisdom *wisdom, Diags *diags);
void wisdom_print(Buf *out, const Wisdom *wisdom);
// Adds plans; of two with the same key the faster one stays, with the greater rigor.
void wisdom_merge(Arena *arena, Wisdom *into, const Wisdom *from);
// Puts plans into the store, all or none: where it has a trial of the same point, that
// stays, and if it failed the plan's rigor counts for nothing. changed: how many were news.
// False with a diagnostic.
bool wisdom_store(Store *store, const Wisdom *wisdom, int *changed, Diags *diags);

#endif
