// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's management library says of a GPU: the energy that it has taken, and what
// its owner allows it. Nothing is set.

#ifndef FW_DEVICE_NVML_H
#define FW_DEVICE_NVML_H

#include "device/device.h"

typedef struct Nvml Nvml;

// The device at a place on PCI, "0000:3b:00". NULL where there is no such library, or it
// does not know the device. Owner: free.
Nvml *nvml_open(const char *bus);
// Since the driver was loaded; accepts NULL. False: it is not counted.
bool nvml_energy(const Nvml *nvml, double *joules);
// "1980 MHz, memory 3201 MHz, 700 W"; accepts NULL. What is not known is left out.
void nvml_limits(const Nvml *nvml, char *out, size_t size);

#endif
