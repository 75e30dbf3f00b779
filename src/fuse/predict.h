// SPDX-License-Identifier: Apache-2.0
//
// predict: how long a fused kernel takes, from times of its parts.

#ifndef FW_FUSE_PREDICT_H
#define FW_FUSE_PREDICT_H

#include "fuse/execute.h"
#include "store/store.h"

// psi of paper 004, section 4.4: the time of a routine an instance, by the instances of a
// block and by the words an instance that others hold on chip.
typedef struct Psi Psi;

// Reads the table of the script's routines on a device from the store; what is missing is
// measured, and stored. NULL with diagnostics. Owner: the caller. measured: routines timed.
Psi *psi_open(const Script *script, const DeviceInfo *device, const char *store,
              const Workplace *place, int *measured, Diags *diags);
void psi_free(Psi *psi); // accepts NULL
// The same from times that were recorded on another machine, or long ago: of keys as the
// store has them, without the hash after #, to double (ns). What is not there is not known.
Psi *psi_recorded(const Script *script, const DeviceInfo *device, const Map *times);

// Equation 3, with the barriers and the start of the kernel: unit ns an instance, of
// `instances` in all.
double psi_predict(const Psi *psi, const Script *script, const FusedKernel *kernel,
                   int64_t instances);

#endif
