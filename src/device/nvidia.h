// SPDX-License-Identifier: Apache-2.0
//
// What the CUDA device loads besides the driver.

#ifndef FW_DEVICE_NVIDIA_H
#define FW_DEVICE_NVIDIA_H

#include "device/device.h"

// CUDA C++ to machine code with NVIDIA's run-time compiler, which needs no GPU.

typedef struct Nvrtc Nvrtc;

// Puts the address of a function into slot; false: log says that what was loaded lacks it.
bool library_find(void *library, const char *name, const char *what, void *slot, Buf *log);

// Loads the library: from $CUDA_HOME, $CUDA_PATH, where the system looks, or
// /usr/local/cuda. NULL where it is not; log says what to install. Owner: nvrtc_close.
Nvrtc *nvrtc_open(Buf *log);
void nvrtc_close(Nvrtc *nvrtc); // accepts NULL
void nvrtc_version(const Nvrtc *nvrtc, int *major, int *minor);

// Appends the cubin of a text to cubin, and to symbols what the names of the text are
// called in it, each with a zero byte after it. arch: "sm_90". Options are split at blanks
// outside quotes. cache: folder of cubins made before, or NULL; a damaged one is made
// again.
DeviceStatus nvrtc_compile(const Nvrtc *nvrtc, const DeviceText *text, const char *arch,
                           const char *cache, Buf *cubin, Buf *symbols, Buf *log);

// What NVIDIA's management library says of a GPU: the energy that it has taken, and what
// its owner allows it. Nothing is set.

typedef struct Nvml Nvml;

// The device at a place on PCI, "0000:3b:00". NULL where there is no such library, or it
// does not know the device. Owner: free.
Nvml *nvml_open(const char *bus);
// Since the driver was loaded; accepts NULL. False: it is not counted.
bool nvml_energy(const Nvml *nvml, double *joules);
// "1980 MHz, memory 3201 MHz, 700 W"; accepts NULL. What is not known is left out.
void nvml_limits(const Nvml *nvml, char *out, size_t size);

#endif
