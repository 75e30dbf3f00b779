// SPDX-License-Identifier: Apache-2.0
//
// How far apart the rows of a tile in local memory are to be.
//
//   method  local memory is 32 banks, each 4 bytes wide. A request of a warp takes as many
//           turns as the bank has words to give that is asked for the most of them; of
//           accesses of 8 and 16 bytes a half and a quarter of the warp is one request.
//           Where the items of a warp begin is known: `item` elements apart in each
//           dimension. Of the row lengths up to a round of banks beyond the tile's own, the
//           first that takes the fewest turns an element is chosen.
//   source  CUDA C++ Programming Guide, shared memory
//
// When it matters: where a warp spans several rows (lx below 32), which then begin in banks
// that others read; where items are several elements apart and rows of a length that is a
// multiple of a vector make one access of four; and for double, of which 16 fill a round.
// What a tile is filled with is written along its rows, and does not conflict within one.
#include "kir/kir.h"

enum { BANKS = 32, WORD_BYTES = 4, VECTOR_BYTES = 16 };

typedef struct {
    const TileShape *tile;
    int64_t row; // elements from one row to the next
    int width;   // elements of an access
} Rows;

// In elements: where the first output of an item lies in the tile.
static int64_t start_of(const Rows *r, int64_t item)
{
    const TileShape *t = r->tile;
    int64_t x = item % t->local[0], y = item / t->local[0] % t->local[1];
    int64_t z = item / t->local[0] / t->local[1];
    return (z * t->item[2] * t->length[1] + y * t->item[1]) * r->row + x * t->item[0];
}

// All items begin where an access of so many elements may.
static int widest(const TileShape *t, int64_t row)
{
    int width = 1;
    while (2 * width <= t->vector && 2 * width * t->bytes <= VECTOR_BYTES &&
           t->item[0] % (2 * width) == 0 && t->item[1] * row % (2 * width) == 0 &&
           t->item[2] * t->length[1] * row % (2 * width) == 0)
        width *= 2;
    return width;
}

// The turns of one request, which is made by the items from `first` on.
static int request_turns(const Rows *r, int64_t first, int64_t end)
{
    int64_t word[BANKS][BANKS]; // those that a bank is asked for, each once
    int asked[BANKS] = {0}, most = 0;
    int64_t bytes = (int64_t)r->width * r->tile->bytes;
    for (int64_t i = first; i < end; i++) {
        int64_t at = start_of(r, i) * r->tile->bytes;
        for (int64_t w = at / WORD_BYTES; w <= (at + bytes - 1) / WORD_BYTES; w++) {
            int64_t bank = w % BANKS;
            int k = 0;
            while (k < asked[bank] && word[bank][k] != w)
                k++;
            if (k == asked[bank])
                word[bank][asked[bank]++] = w;
            most = MAX(most, asked[bank]);
        }
    }
    return most;
}

double tile_turns(const TileShape *tile, int64_t row)
{
    Rows r = {tile, row, widest(tile, row)};
    int64_t items = MIN(tile->local[0] * tile->local[1] * tile->local[2], BANKS);
    int64_t each = BANKS / MAX(r.width * tile->bytes / WORD_BYTES, 1);
    double turns = 0;
    for (int64_t first = 0; first < items; first += each)
        turns += request_turns(&r, first, MIN(first + each, items));
    return turns / r.width;
}

int64_t tile_row(const TileShape *tile)
{
    int64_t best = tile->length[0];
    double least = tile_turns(tile, best);
    for (int64_t row = best + 1; row < tile->length[0] + TILE_PAD; row++) {
        double turns = tile_turns(tile, row);
        if (turns < least) {
            least = turns;
            best = row;
        }
    }
    return best;
}
