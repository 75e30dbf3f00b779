# SPDX-License-Identifier: Apache-2.0
"""Describes forewarp._forewarp to cffi: what forewarp.h declares, and DLPack's structs.

The header is the only description of the library; the compiler compares it with what cffi makes
of it. So a function that is added there is there in Python.
"""

import os
import pathlib
import re
import subprocess

import cffi

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("FOREWARP_BUILD", "build")

# https://dmlc.github.io/dlpack, version 0: what every producer of arrays can give.
DLPACK = """
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
"""

CALLBACKS = """
extern "Python" int python_on_trial(void *user, const fw_trial *trial);
extern "Python" int python_verify(void *user, const fw_result *result);
"""


def declarations():
    """forewarp.h without what is for the preprocessor and for C++."""
    text = (ROOT / "include" / "forewarp.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    return text.replace("FW_API ", "")


def libraries():
    """The options of the linker that the Makefile gives."""
    command = ["make", "-s", "--no-print-directory", "-C", str(ROOT), "print-libs"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


builder = cffi.FFI()
builder.cdef(declarations() + DLPACK + CALLBACKS)
builder.set_source(
    "forewarp._forewarp",
    '#include "forewarp.h"\n' + DLPACK,
    include_dirs=[str(ROOT / "include")],
    extra_objects=[str(BUILD / "lib" / "libforewarp.a")],
    extra_link_args=libraries(),
    py_limited_api=True,
)
