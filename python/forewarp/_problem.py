# SPDX-License-Identifier: Apache-2.0
"""Problems, devices, plans, and kernels that are called on arrays."""

from __future__ import annotations

import dataclasses
import inspect
import operator
import os
import struct
import sys
import textwrap
import threading
from typing import Any, Callable, Mapping, Sequence, Union

from forewarp import _arrays, _options
from forewarp._library import Error, call, ffi, lib, own, packed, taken, text, worker

_RIGOR = {
    "measure": lib.FW_MEASURE,
    "estimate": lib.FW_ESTIMATE,
    "patient": lib.FW_PATIENT,
    "exhaustive": lib.FW_EXHAUSTIVE,
    "wisdom-only": lib.FW_WISDOM_ONLY,
}
_ORIGIN = {
    lib.FW_MEASURED: "measured",
    lib.FW_WISDOM: "wisdom",
    lib.FW_NEAREST: "nearest",
    lib.FW_PREDICTED: "predicted",
    lib.FW_PLAIN: "plain",
}
# Elements in OpenCL's words, as NumPy calls them.
_DTYPE = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32",
    "uint": "uint32", "long": "int64", "ulong": "uint64", "half": "float16", "float": "float32",
    "double": "float64",
}  # fmt: skip
# How struct packs one: of a ushort that stands for a bf16, the bits.
_PACKED = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
AnyPath = Union[str, "os.PathLike[str]", None]
_FILES = (".fw", ".fws", ".json")


class Point(str):
    """A point of a space, "lx=64 ly=4 ...": one value for each parameter of a kernel."""

    @property
    def parameters(self) -> dict[str, Union[int, str]]:
        """The same as a dictionary; numbers are ints."""
        pairs = (item.split("=", 1) for item in self.split())
        return {name: int(value) if value.lstrip("-").isdigit() else value for name, value in pairs}

    @classmethod
    def of(cls, value: Union[str, Mapping[str, Any]]) -> Point:
        if isinstance(value, str):
            return cls(_options.words("a point", value))
        if not isinstance(value, Mapping):
            raise _options.wrong_type('a point is a text "lx=64 ly=4" or a dictionary', value)
        return cls(" ".join(f"{name}={value[name]}" for name in value))


@dataclasses.dataclass(frozen=True)
class Argument:
    """An array that kernels of a problem work on."""

    name: str
    dtype: str  # as NumPy calls it
    shape: tuple[int, ...]
    nbytes: int
    input: bool
    output: bool
    image: bool
    value: bool = False  # a scalar, passed by value


@dataclasses.dataclass(frozen=True)
class Size:
    """A size that kernels take with each call: of a range, or declared generic."""

    name: str
    low: int
    high: int
    multiple: int  # it is a multiple of this
    value: int  # of the problem's arguments; of a range alone, one in the middle


@dataclasses.dataclass(frozen=True)
class Trial:
    """A candidate that was tried."""

    point: Point
    status: str  # "ok", "build-failed", "wrong-result", ...
    time: float  # seconds; 0 unless ok
    max_error: float
    log: str | None

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def trial_of(trial: Any) -> Trial:
    return Trial(Point(text(trial.point)), text(trial.status) or "", trial.time, trial.max_error,
                 text(trial.log))  # fmt: skip


class Device:
    """A device, by name ("opencl:0", "cuda:0", "host"); nothing is kept open."""

    def __init__(self, name: str = "opencl:0"):
        _options.words("device", name)
        self._c = own(call(lib.fw_device_open, packed(name), worker()), lib.fw_device_free)

    @classmethod
    def of(cls, device: Union[str, Device]) -> Device:
        return device if isinstance(device, Device) else cls(device)

    @property
    def id(self) -> str:
        return text(lib.fw_device_id(self._c)) or ""

    @property
    def name(self) -> str:
        return text(lib.fw_device_name(self._c)) or ""

    @property
    def fingerprint(self) -> str:
        """Devices on which times are comparable have the same."""
        return text(lib.fw_device_fingerprint(self._c)) or ""

    def __repr__(self) -> str:
        return f"<forewarp.Device {self.id}: {self.name}>"


# How each option that is a value is read; a field of fw_plan_options is called the same.
_READ = {
    "strategy": lambda value: packed(_options.words("strategy", value)),
    "where": lambda value: packed(_options.words("where", value)),
    "store": lambda value: packed(_options.path("store", value)),
    "models": lambda value: packed(_options.folder("models", value)),
    "seed": lambda value: _options.whole("seed", value, 0, 2**64 - 1),
    "any_device": lambda value: _options.flag("any_device", value),
}


def plan_options(handle: Any = ffi.NULL, **given: Any) -> tuple[Any, list[Any]]:
    """fw_plan_options, and what must live as long. None is the default of an option."""
    options = ffi.new("fw_plan_options *")
    fields = {} if given.get("budget") is None else _options.budget(given["budget"])
    if given.get("trials") is not None:
        trials = _options.whole("trials", given["trials"], 1, 10**9)
        fields["budget_trials"] = min(trials, fields.get("budget_trials", trials))
    fields.update((name, read(given[name])) for name, read in _READ.items() if given.get(name) is not None)
    fields.update(rigor=given.get("rigor", lib.FW_MEASURE), worker=worker(), user=handle)
    for name, value in fields.items():
        setattr(options, name, value)
    return options, list(fields.values())


class _Hooks:
    """What a search tells and asks; what is raised there ends it, and is raised again after it."""

    def __init__(self, problem: Problem, progress: Any, verify: Any):
        self.problem, self.progress, self.verify = problem, progress, verify
        self.trials: list[Trial] = []
        self.raised: BaseException | None = None
        self.best = 0.0

    def guard(self, work: Callable[[], bool], otherwise: bool) -> bool:
        if self.raised:
            return otherwise
        try:
            return work()
        except BaseException as raised:  # KeyboardInterrupt too
            self.raised = raised
            return otherwise

    def tell(self, trial: Trial) -> bool:
        self.trials.append(trial)
        if trial.ok and (self.best == 0 or trial.time < self.best):
            self.best = trial.time
        if self.progress is True:
            best = f", best {self.best * 1e6:.1f} us" if self.best else ""
            print(f"{len(self.trials)} trials{best}: {trial.status}", file=sys.stderr)
            return False
        return bool(self.progress(trial)) if self.progress else False

    def accept(self, result: Any) -> bool:
        def arrays(pointers: Any) -> dict[str, Any]:
            return {
                a.name: _shown(pointers[i], a)
                for i, a in enumerate(self.problem.arguments)
                if pointers[i] != ffi.NULL
            }

        return bool(self.verify(Point(text(result.point)), arrays(result.input), arrays(result.output)))


def _shown(pointer: Any, argument: Argument) -> Any:
    """A copy of memory of the library, as an array of NumPy; without it, as bytes."""
    raw = ffi.buffer(pointer, argument.nbytes)
    try:
        import numpy
    except ImportError:
        return bytes(raw)
    return numpy.frombuffer(bytes(raw), argument.dtype).reshape(argument.shape)


@ffi.def_extern()
def python_on_trial(user: Any, trial: Any) -> int:
    hooks = ffi.from_handle(user)
    return hooks.guard(lambda: hooks.tell(trial_of(trial)), True)


@ffi.def_extern()
def python_verify(user: Any, result: Any) -> int:
    hooks = ffi.from_handle(user)
    return hooks.guard(lambda: hooks.accept(result), False)


class Problem:
    """What to compute, with its sizes.

    source: a program's text, or the path of a program (.fw), a script (.fws) or a problem file
    (.json); name: of a text, in messages; math: how exact float is, "standard", "exact", "strict"
    (the same bits from every kernel) or "fast". The other arguments are sizes: N=4096; or ranges of
    them, N=(1024, 16384) or N=(1024, 16384, 64) for the multiples of 64: a kernel then takes
    arrays of any size in the range.
    Error: a wrong program, or sizes that are missing or wrong; the text shows the place.
    """

    def __init__(self, source: Union[str, os.PathLike[str]], /, *, name: str = "program",
                 math: str | None = None, **sizes: Any):  # fmt: skip
        bound = packed(",".join(f"{size}={_options.size(size, n)}" for size, n in sizes.items()))
        if not isinstance(source, (str, os.PathLike)):
            raise _options.wrong_type("source is the text of a program, or the path of a file", source)
        _options.words("name", name)
        if isinstance(source, os.PathLike) or ("\n" not in source and source.endswith(_FILES)):
            made = call(lib.fw_problem_load, packed(source), bound)
        else:
            made = call(lib.fw_problem_parse, packed(name), packed(source), bound)
        self._c = own(made, lib.fw_problem_free)
        if math is not None:
            call(lib.fw_problem_math, made, packed(_options.words("math", math)))
        self._lock = threading.Lock()
        self.arguments = tuple(self._argument(i) for i in range(lib.fw_problem_arguments(made)))
        self.inputs = tuple(a for a in self.arguments if a.input)
        self.outputs = tuple(a for a in self.arguments if a.output and not a.input)
        self.sizes = tuple(self._size(i) for i in range(lib.fw_problem_sizes(made)))
        self._shapes, self._told = self._formulas() if self.sizes else (None, {})

    def _size(self, i: int) -> Size:
        size = ffi.new("fw_size *")
        lib.fw_problem_size(self._c, i, size)
        return Size(text(size.name) or "", size.low, size.high, size.multiple, size.value)

    def _formulas(self) -> tuple[Any, dict[str, tuple[int, int]]]:
        """The shapes of all arguments as a function of the sizes; which extent tells a size."""
        told: dict[str, tuple[int, int]] = {}
        shapes = []
        for i, argument in enumerate(self.arguments):
            extents = [text(lib.fw_problem_extent(self._c, i, k)) or "" for k in range(len(argument.shape))]
            for k, extent in enumerate(extents):
                if argument.input and extent.isidentifier():
                    told.setdefault(extent, (i, k))
            shapes.append("(" + "".join(extent.replace("/", "//") + ", " for extent in extents) + ")")
        names = ", ".join(size.name for size in self.sizes)
        # What the library prints of sizes: + - * / % min max, names and numbers.
        return eval(f"lambda {names}: ({', '.join(shapes)},)", {"min": min, "max": max}), told

    def sizes_of(self, shapes: Sequence[Sequence[int]], **given: int) -> tuple[int, ...]:
        """The generic sizes, in the order of `sizes`, that shapes of the inputs tell.

        TypeError: they do not tell one that is not given.
        """
        position = {self.arguments.index(a): i for i, a in enumerate(self.inputs)}
        values = []
        for size in self.sizes:
            at = self._told.get(size.name)
            if size.name not in given and at is None:
                raise TypeError(f"no shape tells the size {size.name} of {self.label}: give it, {size.name}=...")
            if size.name in given:
                values.append(operator.index(given.pop(size.name)))
            else:
                shape = shapes[position[at[0]]]
                rank = len(self.arguments[at[0]].shape)
                if len(shape) != rank:
                    name = self.arguments[at[0]].name
                    raise ValueError(f"{name} of {self.label} has {rank} dimensions, not {len(shape)}")
                values.append(shape[at[1]])
        if given:
            raise TypeError(f"{self.label} has no generic size {', '.join(given)}")
        return tuple(values)

    def shapes(self, *sizes: int) -> tuple[tuple[int, ...], ...]:
        """The shapes of all arguments at generic sizes."""
        return self._shapes(*sizes) if self._shapes else tuple(a.shape for a in self.arguments)

    def _argument(self, i: int) -> Argument:
        a = ffi.new("fw_argument *")
        lib.fw_problem_argument(self._c, i, a)
        rank = lib.fw_problem_shape(self._c, i, ffi.NULL, 0)
        extent = ffi.new("int64_t[]", rank + 1)
        lib.fw_problem_shape(self._c, i, extent, rank)
        element = (text(a.type) or "").rstrip("0123456789")
        return Argument(text(a.name) or "", _DTYPE[element], tuple(extent[0:rank]), a.bytes,
                        bool(getattr(a, "in")), bool(a.out), bool(a.image), bool(a.value))  # fmt: skip

    @property
    def label(self) -> str:
        """ "jacobi2d N=4096 M=4096": what messages and wisdom call it."""
        return text(lib.fw_problem_label(self._c)) or ""

    @property
    def bytes(self) -> float:
        """Bytes that any kernel must move: each input read once, each output written once."""
        return lib.fw_problem_bytes(self._c)

    def __repr__(self) -> str:
        return f"<forewarp.Problem {self.label}>"

    def tune(
        self,
        device: Union[str, Device] = "opencl:0",
        *,
        budget: Union[float, str, None] = None,
        trials: int | None = None,
        rigor: str = "measure",
        progress: Union[bool, Callable[[Trial], Any], None] = None,
        verify: Callable[[Point, dict[str, Any], dict[str, Any]], Any] | None = None,
        strategy: str | None = None,
        where: str | None = None,
        seed: int | None = None,
        store: AnyPath = None,
        models: AnyPath = None,
        any_device: bool = False,
    ) -> Plan:
        """A plan: wisdom of an earlier search, or what a search finds now.

        budget: seconds, or a text as `tune --budget` takes it: "8s", "200t", "95%" (of the speed
        that the device allows), "quiet:50t" (that many without a gain), or several joined by
        commas. trials: at most so many. rigor: "measure", "estimate" (nothing is run),
        "patient", "exhaustive", "wisdom-only". progress: True prints a line for each trial; a
        function is told of each, and ends the search by returning true. verify: shown a point and
        what the kernel read and wrote, by name; false rejects it. The others are those of
        fw_plan_options in forewarp.h. Ctrl-C ends the search, and is raised.
        """
        _options.one_of("rigor", rigor, _RIGOR)
        if not isinstance(progress, bool):
            _options.function("progress", progress, "True, False, ")
        _options.function("verify", verify)
        hooks = _Hooks(self, progress, verify)
        handle = ffi.new_handle(hooks)
        options, keep = plan_options(handle, budget=budget, trials=trials, rigor=_RIGOR[rigor],
                                     strategy=strategy, where=where, seed=seed, store=store,
                                     models=models, any_device=any_device)  # fmt: skip
        options.on_trial = lib.python_on_trial
        if verify:
            options.verify = lib.python_verify
        where_to = Device.of(device)
        try:
            with self._lock:
                made = call(lib.fw_plan_make, self._c, where_to._c, options)
        except Error:
            if hooks.raised:
                raise hooks.raised from None
            raise
        del keep
        plan = Plan(own(made, lib.fw_plan_free), self, where_to, tuple(hooks.trials))
        if hooks.raised:
            raise hooks.raised
        return plan

    def load(self, device: Union[str, Device] = "opencl:0", **options: Any) -> Kernel:
        """A kernel without a search: of wisdom, of the nearest sizes, or what a model predicts."""
        return self.tune(device, rigor="estimate", **options).load()

    def forget(self, device: Union[str, Device] = "opencl:0", store: AnyPath = None) -> None:
        """Forgets all trials of this problem on a device."""
        with self._lock:
            call(lib.fw_wisdom_forget, packed(_options.store(store)), self._c, Device.of(device)._c)


class Plan:
    """Kernels, and how they are launched, for one problem on one device."""

    def __init__(self, pointer: Any, problem: Problem, device: Device, trials: tuple[Trial, ...] = ()):
        self._c = pointer
        self.problem = problem
        self.device = device
        self.trials = trials  # those of the search; none if the plan was wisdom
        self.origin = _ORIGIN[lib.fw_plan_origin(pointer)]  # how far to trust it
        self.found_for = text(lib.fw_plan_found_for(pointer))  # another problem, or None
        self.foreign = text(lib.fw_plan_foreign(pointer))  # another device, or None
        self.source = text(lib.fw_plan_source(pointer)) or ""
        self.target = text(lib.fw_plan_target(pointer)) or ""
        self.point = Point(text(lib.fw_plan_point(pointer)))
        self.time: float = lib.fw_plan_time(pointer)  # seconds; 0: not known
        self.baseline: float = lib.fw_plan_baseline(pointer)  # of the plain kernel

    def __repr__(self) -> str:
        time = f", {self.time * 1e6:.1f} us" if self.time else ""
        return f"<forewarp.Plan {self.problem.label} on {self.device.id}, {self.origin}{time}>"

    def host(self, stem: str) -> tuple[str, str]:
        """The plan as a C program without forewarp: the texts of stem.h and stem.c."""
        header, body = ffi.new("char **"), ffi.new("char **")
        call(lib.fw_plan_host, self._c, packed(_options.words("stem", stem)), header, body)
        return taken(header[0]) or "", taken(body[0]) or ""

    def frame(self) -> Any:
        """The trials as a pandas.DataFrame."""
        return frame(self.trials)

    def load(self, queue: Any = None) -> Kernel:
        """Compiles it in this process. queue: a pyopencl.CommandQueue whose arrays will be passed."""
        return Kernel(self, queue)


def frame(trials: Sequence[Trial]) -> Any:
    """Trials as a pandas.DataFrame: a row each, a column for each parameter, status, time."""
    import pandas

    rows = [
        {**t.point.parameters, "status": t.status, "time": t.time if t.ok else None,
         "max_error": t.max_error}
        for t in trials
    ]  # fmt: skip
    return pandas.DataFrame(rows)


class Kernel:
    """A plan that is compiled here: call it on arrays.

    kernel(a, b) returns the output, or a tuple of several, as arrays of the kind of the first
    input; kernel(a, b, out=c) writes into c. Arrays are used where they are, without a copy:
    those of the processor by plans for "host" and OpenCL's processors, those of CUDA (PyTorch,
    CuPy, JAX) by plans for CUDA, those of pyopencl by plans that are loaded for their queue.
    Arrays of the processor may be passed to any plan: the library then copies them.

    On CUDA the work is put into the stream that the package of the first array uses now, or
    into `stream`, and nothing waits. A scalar is a number; of an array of one element the number is
    read, which on a GPU waits for it.

    TypeError: a wrong number of arrays, elements of another type, an array on another device.
    ValueError: a wrong shape, an array that is not dense, an output that is read-only.
    Error: the driver failed, or an output shares memory with another array.
    """

    def __init__(self, plan: Plan, queue: Any = None):
        self.plan = plan
        self.problem = plan.problem
        self._lock = threading.Lock()
        self._queue: Any = None
        if queue is not None and not isinstance(getattr(queue, "int_ptr", queue), int):
            raise _options.wrong_type("queue is a pyopencl.CommandQueue", queue)
        if queue is None:
            self._queue = own(call(lib.fw_queue_open, plan.device._c), lib.fw_queue_free)
            self._handle = lib.fw_queue_handle(self._queue)
        else:
            self._handle = ffi.cast("void *", getattr(queue, "int_ptr", queue))
        made = call(lib.fw_load, plan._c, self._handle)
        self._c = own(made, lib.fw_executable_free, plan._c, self._queue)
        # What the last call found: of each argument its layout, shape, device, index, queue. A
        # call with arrays of the same layouts checks nothing again.
        arguments = self.problem.arguments
        self._inputs = [arguments.index(a) for a in self.problem.inputs]
        self._outputs = [arguments.index(a) for a in self.problem.outputs]
        self._known: list[Any] = [None] * len(arguments)
        self._shapes = tuple(a.shape for a in arguments)
        self._stale, self._given, self._copies, self._ordered = True, False, True, False
        self._keep: list[Any] = []
        self._pointers = ffi.new("uintptr_t[]", len(arguments) + 1)
        self._addresses = ffi.cast("void **", self._pointers)
        self._message = ffi.new("char **")
        self._values = {}  # of a scalar: how it is packed, and where
        for place, argument in enumerate(arguments):
            if argument.value:
                cell = ffi.new("char[]", 8)
                self._values[place] = (struct.Struct(_PACKED[argument.dtype]), ffi.buffer(cell), cell)
                self._pointers[place] = int(ffi.cast("uintptr_t", cell))
                self._known[place] = ((), (), None, 0, 0)

    def __repr__(self) -> str:
        return f"<forewarp.Kernel {self.problem.label} on {self.plan.device.id}>"

    def __call__(self, *arrays: Any, out: Any = None, stream: int | None = None, **sizes: int) -> Any:
        inputs, outputs = self.problem.inputs, self.problem.outputs
        if len(arrays) != len(inputs):
            names = ", ".join(a.name for a in inputs)
            of = "input" if len(inputs) == 1 else "inputs"
            raise TypeError(f"{self.problem.label} takes {len(inputs)} {of} ({names}), not {len(arrays)}")
        if stream is not None:
            stream = _options.whole("stream", stream, 0, 2**64 - 1)
        like = next((a for a, argument in zip(arrays, inputs) if not argument.value), None)
        ordered = stream is not None
        if stream is None and like is not None:
            stream = _arrays.current_stream(like)
        with self._lock:
            self._keep, self._ordered = [], ordered
            for place, argument, array in zip(self._inputs, inputs, arrays):
                if argument.value:
                    self._pack(place, argument, array)
                else:
                    self._look(place, array, stream, False)
            if self._stale or sizes or self._given:
                self._settle(sizes)
            if out is None:
                made = [_arrays.empty(like, self._shapes[i], a.dtype) for i, a in zip(self._outputs, outputs)]
            else:
                made = list(out) if isinstance(out, (tuple, list)) else [out]
            if len(made) != len(outputs):
                names = ", ".join(a.name for a in outputs)
                raise TypeError(f"{self.problem.label} has {len(outputs)} outputs ({names}), not {len(made)}")
            for place, array in zip(self._outputs, made):
                self._look(place, array, stream, out is None)
            if self._stale:
                self._check()
            self._run(stream)
            self._keep = []
        return made[0] if len(made) == 1 else tuple(made) if made else None

    def _pack(self, place: int, argument: Argument, value: Any) -> None:
        """Takes the value of a scalar."""
        name, (packing, room, _) = f"{argument.name} of {self.problem.label}", self._values[place]
        try:
            number = _arrays.number(value)
            packing.pack_into(room, 0, number)
        except TypeError as wrong:
            raise TypeError(f"{name} is a number, not {wrong}") from None
        except (struct.error, OverflowError):
            raise TypeError(f"{name} is a number of type {argument.dtype}, not {value!r}") from None

    def _look(self, place: int, array: Any, stream: int | None, fresh: bool) -> None:
        """Takes the address of an array, and what there is to know of it if that is new."""
        seen = None if self._ordered else _arrays.probe(array)
        known = self._known[place]
        if seen is not None and known is not None and known[0] == seen[1]:
            self._pointers[place] = seen[0]
            if fresh:
                self._keep.append(array)
            return
        view = self._view(self.problem.arguments[place], array, stream, fresh)
        self._stale = True  # until all is checked
        self._known[place] = (seen and seen[1], view.shape, view.device, view.index, view.queue)
        self._pointers[place] = view.pointer
        self._keep.append(view)

    def _settle(self, given: Mapping[str, int]) -> None:
        """Sizes of this call, by the shapes of the inputs."""
        problem = self.problem
        self._stale, self._given = True, bool(given)
        if not problem.sizes:
            if given:
                raise TypeError(f"{problem.label} has no generic sizes")
            return
        values = problem.sizes_of([self._known[i][1] for i in self._inputs], **given)
        call(lib.fw_resize, self._c, values, len(values))
        self._shapes = problem.shapes(*values)

    def _view(self, argument: Argument, array: Any, stream: int | None, fresh: bool) -> _arrays.View:
        name, label = argument.name, self.problem.label
        try:
            seen = _arrays.view(array, stream)
        except (TypeError, ValueError, BufferError) as wrong:
            kind = ValueError if isinstance(wrong, ValueError) else TypeError
            raise kind(f"{name} of {label}: {wrong}") from wrong
        if seen.dtype != argument.dtype and (seen.dtype, argument.dtype) != ("bool", "uint8"):
            raise TypeError(f"{name} of {label} has elements of {argument.dtype}, not {seen.dtype}")
        if not seen.dense:
            raise ValueError(f"{name} of {label} is not dense (strides {seen.strides}): pass a copy, or the whole "
                             "array to a program that takes a part of it")
        if argument.output and seen.readonly and not (fresh and not argument.input):
            raise ValueError(f"{name} of {label} is written, and this array is read-only")
        return seen

    def _check(self) -> None:
        """Shapes and devices of all arrays."""
        label, target, device = self.problem.label, self.plan.target, self.plan.device.id
        arrays = [known for place, known in enumerate(self._known) if place not in self._values]
        for argument, shape, known in zip(self.problem.arguments, self._shapes, self._known):
            if known[1] != shape and not (shape == () and known[1] == (1,)):
                raise ValueError(f"{argument.name} of {label} has shape {shape}, not {known[1]}")
        kinds = {known[2] for known in arrays}
        if len(kinds) > 1:
            raise TypeError(f"the arrays are on several kinds of devices: {', '.join(sorted(kinds))}")
        self._copies = kinds == {"cpu"} or not kinds
        if not self._copies and kinds != {target}:
            raise TypeError(f"the kernel is for {device}, the arrays are on {kinds.pop()}")
        other = {known[3] for known in arrays if f"{target}:{known[3]}" != device}
        if not self._copies and target == "cuda" and other:
            raise TypeError(f"the kernel is for {device}, an array is on cuda:{other.pop()}")
        self._stale = any(known[0] is None for known in arrays)

    def _run(self, stream: int | None) -> None:
        n = len(self._known)
        if self._copies:
            done = lib.fw_run(self._c, self._addresses, n, self._message)
        else:
            queue = next(k[4] for k in self._known if k[2]) if self.plan.target == "opencl" else stream or 0
            done = lib.fw_execute(self._c, ffi.cast("void *", queue), self._addresses, n, self._message)
        if not done:
            raise Error((taken(self._message[0]) or "").rstrip("\n"))


class Program:
    """A program whose sizes are still open: give them, and it is a Problem."""

    def __init__(self, source: str, name: str = "program"):
        self.source, self.__name__ = textwrap.dedent(source), name

    def __call__(self, **sizes: Any) -> Problem:
        return Problem(self.source, name=self.__name__, **sizes)

    def __repr__(self) -> str:
        return f"<forewarp.Program {self.__name__}>"


def program(source: Union[str, Callable[..., Any]]) -> Program:
    """A Program from a text; as a decorator, from the docstring of a function."""
    if isinstance(source, str):
        return Program(source)
    if not callable(source):
        raise _options.wrong_type("a program is a text, or a function with one as its docstring", source)
    doc = inspect.getdoc(source)
    if not doc:
        raise TypeError(f"the program is to be the docstring of {source.__name__}, which has none")
    return Program(doc, source.__name__)
