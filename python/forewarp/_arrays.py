# SPDX-License-Identifier: Apache-2.0
"""Arrays of others (NumPy, PyTorch, CuPy, JAX, pyopencl, ...) as pointers, without a copy.

Processor arrays come through the buffer protocol, else DLPack; those of GPUs through DLPack, which
orders their pending work before ours, else __cuda_array_interface__; those of pyopencl as cl_mem.
No library of arrays is imported here: what is imported belongs to an array that was passed.
"""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any

from forewarp._library import ffi

# A type of elements is (kind, bytes): of DLPack's codes, of struct's and NumPy's letters.
_DLPACK_KIND = {0: "i", 1: "u", 2: "f", 4: "b", 6: "?"}
_DLPACK_DEVICE = {1: "cpu", 2: "cuda", 3: "cpu", 4: "opencl", 10: "rocm", 13: "cuda"}
_STRUCT_KIND = {"?": "?", "c": "u", "e": "f", "f": "f", "d": "f", "b": "i", "h": "i", "i": "i",
                "l": "i", "q": "i", "B": "u", "H": "u", "I": "u", "L": "u", "Q": "u"}  # fmt: skip
_KIND_NAME = {"i": "int", "u": "uint", "f": "float", "b": "bfloat", "?": "bool"}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


@dataclasses.dataclass(frozen=True)
class View:
    """Where an array is, and what."""

    pointer: int
    device: str  # "cpu", "cuda", "opencl", "rocm"
    index: int  # of the device among those of its kind
    kind: str  # of an element: a key of _KIND_NAME
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in bytes; None: dense, the last index fastest
    readonly: bool
    keep: Any  # what must live while the pointer is used
    queue: int = 0  # OpenCL: the cl_command_queue of the array

    @property
    def dtype(self) -> str:
        name = _KIND_NAME[self.kind]
        return name if self.kind == "?" else f"{name}{8 * self.itemsize}"

    @property
    def dense(self) -> bool:
        if self.strides is None or 0 in self.shape:
            return True
        step = self.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True


def _of_buffer(array: Any) -> View | None:
    try:
        seen = memoryview(array)
    except (TypeError, ValueError, BufferError):
        return None
    letter = seen.format.lstrip("@=<") if seen.format else "B"
    if letter not in _STRUCT_KIND:
        return None
    source = ffi.from_buffer(array) if seen.c_contiguous else array
    pointer = int(ffi.cast("uintptr_t", source)) if seen.c_contiguous else 0
    return View(pointer, "cpu", 0, _STRUCT_KIND[letter], seen.itemsize, tuple(seen.shape or ()),
                tuple(seen.strides or ()), seen.readonly, (seen, source))  # fmt: skip


def _of_dlpack(array: Any, stream: int | None) -> View:
    code, index = array.__dlpack_device__()
    device = _DLPACK_DEVICE.get(int(code))
    if device is None:
        raise TypeError(f"an array on a device of DLPack's type {int(code)}")
    # 1 is the default stream: 0 would be ambiguous.
    capsule = array.__dlpack__(stream=stream or 1) if device == "cuda" else array.__dlpack__()
    # Its first member is the tensor.
    address = _capsule_pointer(capsule, b"dltensor")
    tensor = ffi.cast("DLTensor *", address)
    kind = _DLPACK_KIND.get(tensor.dtype.code)
    if kind is None or tensor.dtype.bits % 8 != 0 or tensor.dtype.lanes != 1:
        raise TypeError("elements of a type that forewarp does not know")
    size = tensor.dtype.bits // 8
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = None
    if tensor.strides != ffi.NULL:
        strides = tuple(tensor.strides[i] * size for i in range(tensor.ndim))
    pointer = int(ffi.cast("uintptr_t", tensor.data)) + tensor.byte_offset
    return View(pointer, device, int(index), kind, size, shape, strides, False, (capsule, array))


def _of_cuda(array: Any) -> View:
    seen = array.__cuda_array_interface__
    kind, size = seen["typestr"][1], int(seen["typestr"][2:])
    if kind == "b":
        kind = "?"
    if kind not in _KIND_NAME:
        raise TypeError(f"elements of type {seen['typestr']}")
    pointer, readonly = seen["data"]
    device = getattr(array, "device", None)
    index = getattr(device, "id", getattr(device, "index", 0))
    return View(int(pointer), "cuda", index if isinstance(index, int) else 0, kind, size,
                tuple(seen["shape"]), seen.get("strides"), bool(readonly), array)  # fmt: skip


def _of_pyopencl(array: Any) -> View:
    if array.offset != 0:
        raise ValueError("a pyopencl array that begins inside its buffer")
    dtype = array.dtype
    kind = {"b": "?"}.get(dtype.kind, dtype.kind)
    return View(array.base_data.int_ptr, "opencl", 0, kind, dtype.itemsize, tuple(array.shape),
                tuple(array.strides), False, array, array.queue.int_ptr)  # fmt: skip


def _probe_numpy(array: Any) -> tuple[int, Any]:
    seen = array.__array_interface__
    pointer, readonly = seen["data"]
    return pointer, (seen["typestr"], array.shape, array.strides, readonly)


def _probe_torch(array: Any) -> tuple[int, Any]:
    return array.data_ptr(), (array.dtype, array.shape, array.stride(), array.device, array.requires_grad)


def _probe_cupy(array: Any) -> tuple[int, Any]:
    return array.data.ptr, (array.dtype, array.shape, array.strides, array.device.id)


_PROBES: dict[type, Any] = {}


def probe(array: Any) -> tuple[int, Any] | None:
    """The address of an array, and a value that is equal where all else is the same.

    None: it takes view() to tell. What is pending on the array must be on the stream that its
    package names, which the caller uses; for another stream view() orders it.
    """
    kind = type(array)
    if kind not in _PROBES:
        names = {"numpy": _probe_numpy, "torch": _probe_torch, "cupy": _probe_cupy}
        _PROBES[kind] = names.get(library(array)) if hasattr(array, "shape") else None
    found = _PROBES[kind]
    return found(array) if found else None


def view(array: Any, stream: int | None = None) -> View:
    """Where an array is. stream: of a GPU, where its pending work is to be ordered before ours.

    TypeError: it is no array.
    """
    if hasattr(array, "base_data") and hasattr(array, "queue"):
        return _of_pyopencl(array)
    seen = _of_buffer(array)
    if seen:
        return seen
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _of_dlpack(array, stream)
    if hasattr(array, "__cuda_array_interface__"):
        return _of_cuda(array)
    raise TypeError(f"expected an array, not {type(array).__name__}")


def library(array: Any) -> str:
    """The package that an array is of: "numpy", "torch", "cupy", "jax", ..."""
    name = type(array).__module__.partition(".")[0]
    return {"jaxlib": "jax"}.get(name, name)


def current_stream(array: Any) -> int | None:
    """The CUstream that the array's package puts its work into now; None: it does not say."""
    name = library(array)
    if name == "torch" and array.is_cuda:
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)
    if name == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return None


def empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A new array of the package, and on the device, of another."""
    name = library(like)
    if name == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    if name == "cupy":
        cupy = sys.modules["cupy"]
        with like.device:
            return cupy.empty(shape, dtype)
    if name == "jax":
        jax = sys.modules["jax"]
        made = jax.device_put(jax.numpy.empty(shape, dtype), next(iter(like.devices())))
        return made.block_until_ready()
    if name == "pyopencl":
        return type(like)(like.queue, shape, dtype)
    try:
        import numpy
    except ImportError:
        raise TypeError(f"an output has to be given (out=...) beside {type(like).__name__}") from None
    return numpy.empty(shape, dtype)


def number(value: Any) -> Any:
    """A number as Python has it, also that of an array of one element."""
    if isinstance(value, (int, float)):
        return value
    if hasattr(value, "queue") and hasattr(value, "get"):  # pyopencl
        value = value.get()
    if not hasattr(value, "item") or tuple(getattr(value, "shape", ())) not in ((), (1,)):
        raise TypeError(f"{type(value).__name__}")
    return value.item()
