// SPDX-License-Identifier: Apache-2.0
//
// demand: what each launch of a candidate asks of the parts of a device.
//
//   source  paper 003, section 6.2 (overlap, occupancy, caches, bank conflicts); the counts
//           are those of counts.h, the residency that of features.def
//   method  counts by work-items, then a walk over the kernel that looks at each access by
//           warps; the same walk finds the features
//
// It knows what a device is made of, never how fast. Estimated, not counted: registers, and
// with them how many groups reside on a multiprocessor at once.

#ifndef FW_COST_DEMAND_H
#define FW_COST_DEMAND_H

#include "cost/counts.h"
#include "cost/walk.h"

#define RESOURCES_DEF(X)                                                                   \
    X(LAUNCH, "launches")                                                                  \
    X(GROUPS, "groups")                                                                    \
    X(FAR, "far memory")                                                                   \
    X(NEAR, "last cache")                                                                  \
    X(CACHE, "nearest cache")                                                              \
    X(ISSUE, "execution")                                                                  \
    X(WAIT, "waiting")

typedef enum {
#define X(id, text) RESOURCE_##id,
    RESOURCES_DEF(X)
#undef X
        RESOURCES
} Resource;

typedef enum {
#define DEMAND(id, name, resource, subject, unit, doc) DEMAND_##id,
#include "cost/demand.def"
#undef DEMAND
    DEMANDS
} DemandId;

typedef struct {
    const char *name, *unit, *doc;
    Resource resource;
    Subject subject;
} DemandInfo;
extern const DemandInfo demand_info[DEMANDS];
extern const char *const resource_name[RESOURCES];
int demand_find(const char *name); // the demand of that name, or -1

// The demands of one launch of one kernel.
typedef struct {
    double value[DEMANDS];
    double waves;    // groups over those that reside on the device at once
    double launches; // of the kernel
} Demand;

// The demands of each kernel of a unit, at the sizes and for the device that the setting
// names, and the features of all of them (NULL: they are not asked for); returns how many
// kernels there are, 0 if a size has no value. Owner: arena.
int demand_unit(const Unit *unit, const FeatureSetting *setting, Arena *arena,
                Demand **demand, double feature[FEATURES]);

// unit.c, which walks the kernels: an access by so many lanes, and all else after them,
// while the walk is where it ended. False if a size has no value.
void demand_note(Demand *demand, const CountedAccess *access, int lanes);
bool demand_finish(Demand *demand, CostWalk *walk, const Unit *unit, const Kernel *kernel);

#endif
