// SPDX-License-Identifier: Apache-2.0
//
// Overlapped tiling: windows over a tile and its halo instead of over the whole array.
//
//   source  paper 000, section 3.4; Lift SlideTiling (tileStencils, tile2DStencilsZip)
//
// In any number of dimensions at once, since slide, map, pad and take are so here. A tile
// that sticks out is filled with copies of edge elements, and its outputs are cut off.

#include "rewrite/internal.h"

typedef struct {
    int dims;
    const int64_t *n;         // outputs of a tile
    const Arith *k[DIMS_MAX]; // outputs missing to whole tiles
} Tiles;

static bool tiles_of(Rewrite *rw, const Expr *at, const RuleArgs *args, Tiles *tiles)
{
    if (args->n != at->dims)
        return false;
    *tiles = (Tiles){at->dims, args->at, {0}};
    for (int k = 0; k < at->dims; k++) {
        if (args->at[k] < 1)
            return false;
        tiles->k[k] = missing(rw, len_of(at, k), args->at[k]);
    }
    return true;
}

// The inputs of each tile: its windows joined, one tile's outputs apart.
static Expr *overlapped(Rewrite *rw, const Tiles *tiles, const Expr *slide)
{
    ArithCtx *c = rw->ir->arith;
    const Arith *more[DIMS_MAX], *window[NUMS_MAX];
    for (int k = 0; k < tiles->dims; k++) {
        const Arith *size = slide->num[2 * k], *step = slide->num[2 * k + 1];
        more[k] = arith_mul(c, tiles->k[k], step);
        window[2 * k] = arith_add(c, size, arith_mulc(c, step, tiles->n[k] - 1));
        window[2 * k + 1] = arith_mulc(c, step, tiles->n[k]);
    }
    Expr *covered = pad_far(rw, tiles->dims, more, copy_of(rw, slide->arg[0]));
    return make(rw, P_SLIDE, tiles->dims, window, NULL, covered);
}

static Expr *slide_like(Rewrite *rw, const Expr *slide, Expr *in)
{
    return make(rw, P_SLIDE, slide->dims, slide->num, NULL, in);
}

static Expr *untiled(Rewrite *rw, const Expr *at, const Tiles *tiles, Param *tile,
                     Expr *work, Expr *in)
{
    Expr *all = map_by(rw, tiles->dims, tile, work, in);
    Expr *joined = make(rw, P_JOIN, tiles->dims, NULL, NULL, all);
    return cut(rw, at, tiles->k, tiles->dims, joined);
}

static Expr *split_up(Rewrite *rw, const Tiles *tiles, const Expr *plain)
{
    const Arith *n[DIMS_MAX];
    for (int k = 0; k < tiles->dims; k++)
        n[k] = num(rw, tiles->n[k]);
    return make(rw, P_SPLIT, tiles->dims, n, NULL,
                pad_far(rw, tiles->dims, tiles->k, copy_of(rw, plain)));
}

static Expr *tile_one(Rewrite *rw, const Expr *at, const Tiles *tiles)
{
    const Expr *slide = at->arg[0];
    Param *tile = fresh(rw, "tile");
    Expr *windows = slide_like(rw, slide, use(rw, tile));
    Expr *work = make_map(rw, tiles->dims, copy_of(rw, at->fun), windows);
    return untiled(rw, at, tiles, tile, work, overlapped(rw, tiles, slide));
}

static Expr *tile_zip(Rewrite *rw, const Expr *at, const Tiles *tiles)
{
    const Expr *zip = at->arg[0];
    Expr *in[PARTS_MAX], *own[PARTS_MAX];
    Param *tile = fresh(rw, "tile");
    bool window = false;
    for (int i = 0; i < zip->narg; i++) {
        const Expr *part = zip->arg[i];
        own[i] = get_of(rw, tile, i);
        if (is_dims(part, P_SLIDE, tiles->dims)) {
            window = true;
            in[i] = overlapped(rw, tiles, part);
            own[i] = slide_like(rw, part, own[i]);
        } else {
            in[i] = split_up(rw, tiles, part);
        }
    }
    if (!window)
        return NULL;
    Expr *pairs = make_zip(rw, tiles->dims, own, zip->narg);
    Expr *work = make_map(rw, tiles->dims, copy_of(rw, at->fun), pairs);
    return untiled(rw, at, tiles, tile, work, make_zip(rw, tiles->dims, in, zip->narg));
}

Expr *rule_tile(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Tiles tiles;
    if (!expr_is(at, P_MAP) || !tiles_of(rw, at, args, &tiles))
        return NULL;
    if (is_dims(at->arg[0], P_SLIDE, at->dims))
        return tile_one(rw, at, &tiles);
    if (is_dims(at->arg[0], P_ZIP, at->dims) && at->arg[0]->narg <= PARTS_MAX)
        return tile_zip(rw, at, &tiles);
    return NULL;
}
