// SPDX-License-Identifier: Apache-2.0
//
// CUDA C++ to machine code with NVIDIA's run-time compiler, which needs no GPU.

#ifndef FW_DEVICE_NVRTC_H
#define FW_DEVICE_NVRTC_H

#include "device/device.h"

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

#endif
