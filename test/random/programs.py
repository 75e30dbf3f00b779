# SPDX-License-Identifier: Apache-2.0
"""Random well-typed programs, and what they compute.

An expression is drawn and evaluated at once. Its data are NumPy arrays whose first axes, the
batch, are the iterations of all functions around it, so that the body of a `map` is drawn and
evaluated once for all elements: an element of an array is the same array with one axis more in
the batch. A reduction folds what its function adds to the accumulator. The body of an
`iterate` is drawn again from the same state of the generator for each step.

Floats are multiples of 1/256 below 2^15 everywhere, so that all sums and products are exact in
float and their order does not matter: results are compared for equality. A program that leaves
this range is drawn again. A program has one more type of integers, "other", that wraps around as
NumPy's does. What is drawn leans to what guards keep from being read: constant
pads of computed arrays, elements behind `if`, `&&` and `||`, rests of blocks.
"""
import os
import random
import sys
from dataclasses import dataclass

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from arrays import np  # noqa: E402

ELEMENTS_MAX, EVALUATED_MAX = 3000, 200000
EXACT, LARGEST, LARGEST_INT, LARGEST_OTHER = 256, 1 << 15, 1 << 24, 1 << 40
OTHERS = {"char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "uint": np.uint32,
          "long": np.int64}
OPERATORS = ("&&", "||", "+", "^")


np.seterr(over="ignore")


class Reject(Exception):
    """A draw that leads nowhere: too large, inexact, or without what it needs."""


@dataclass(frozen=True)
class Array:
    length: int
    size: str  # the length as the program writes it
    elem: object


@dataclass(frozen=True)
class Tuple:
    items: tuple


@dataclass
class Expr:
    text: str
    type: object  # "int", "float", "bool", Array, Tuple
    data: object  # an array of shape batch + lengths; of tuples a tuple of such
    batch: int


def is_scalar(type_):
    return isinstance(type_, str)


def each(function, data):
    """function of every array in data."""
    return tuple(each(function, d) for d in data) if isinstance(data, tuple) else function(data)


def leaves(data):
    return [leaf for d in data for leaf in leaves(d)] if isinstance(data, tuple) else [data]


def leaf_types(type_):
    if isinstance(type_, Tuple):
        return [t for item in type_.items for t in leaf_types(item)]
    return leaf_types(type_.elem) if isinstance(type_, Array) else [type_]


def lifted(expr, batch):
    """Its data with so many axes in the batch."""
    more = (1,) * (batch - expr.batch)
    return each(lambda d: d.reshape(d.shape[: expr.batch] + more + d.shape[expr.batch :]), expr.data)


def dims_of(type_):
    return 1 + dims_of(type_.elem) if isinstance(type_, Array) else 0


def elem_type(type_, dims=1):
    return elem_type(type_.elem, dims - 1) if dims else type_


def array_type(lengths, elem):
    """lengths: pairs of a number and its text."""
    for length, size in reversed(lengths):
        elem = Array(length, str(size), elem)
    return elem


def lengths_of(type_, dims):
    return [(elem_type(type_, k).length, elem_type(type_, k).size) for k in range(dims)]


def count(type_):
    if isinstance(type_, Tuple):
        return sum(map(count, type_.items))
    return type_.length * count(type_.elem) if isinstance(type_, Array) else 1


class Generator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.names = 0
        self.float = self.rng.choice(["float", "float", "double"])
        self.other = self.rng.choice(list(OTHERS))
        self.dtype = {"int": np.int32, "other": OTHERS[self.other], "bool": np.bool_,
                      "float": np.float32 if self.float == "float" else np.float64}
        self.sizes, self.functions = {}, []

    # Parts of texts -------------------------------------------------------------------

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def chance(self, share):
        return self.rng.random() < share

    def type_name(self, scalar):
        return {"float": self.float, "other": self.other}.get(scalar, scalar)

    def type_text(self, type_):
        if isinstance(type_, Array):
            return f"[{type_.size}]{self.type_text(type_.elem)}"
        if isinstance(type_, Tuple):
            return f"({', '.join(map(self.type_text, type_.items))})"
        return self.type_name(type_)

    def call(self, pattern, arguments, x):
        if self.chance(0.5):
            return f"{pattern}({', '.join([*arguments, x])})"
        return f"({x} |> {pattern}{'(' + ', '.join(arguments) + ')' if arguments else ''})"

    def value(self, text, type_, data, batch):
        """A scalar expression, whose data are checked."""
        data = np.asarray(data)
        if type_ == "other" and data.dtype.kind == "i" and np.abs(data.astype(np.int64)).max() > LARGEST_OTHER:
            raise Reject
        data = data.astype(self.dtype[type_])
        if data.size > EVALUATED_MAX:
            raise Reject
        if type_ == "float" and (np.abs(data).max() > LARGEST or np.any(data * EXACT % 1)):
            raise Reject
        if type_ == "int" and np.abs(data.astype(np.int64)).max() > LARGEST_INT:
            raise Reject
        return Expr(text, type_, data, batch)

    def combined(self, text, type_, function, *args):
        batch = max(a.batch for a in args)
        return self.value(text, type_, function(*(lifted(a, batch) for a in args)), batch)

    # Scalars --------------------------------------------------------------------------

    def literal(self, type_, bare=False):
        if type_ == "bool":
            number = self.chance(0.5)
            text = "true" if number else "false"
        elif type_ == "int":
            number = self.rng.randint(-4, 5)
            text = f"{number}" if number >= 0 else f"({number})"
        elif type_ == "other":
            number = self.rng.randint(0, 120)
            text = f"{number}" if bare else f"{self.other}({number})"
        else:
            number = self.rng.randint(-8, 8) / 4
            text = f"{number}" if number >= 0 else f"({number})"
            text = text if bare or self.float == "float" else f"double({number})"
        return self.value(text, type_, number, 0)

    def converted(self, x, type_):
        if x.type == type_:
            return x
        if type_ == "bool":
            above = x.type == "float" and self.chance(0.5)
            return self.combined(f"({x.text} > 0)" if above else f"bool({x.text})",
                                 type_, (lambda a: a > 0) if above else (lambda a: a != 0), x)
        if type_ == "other":
            x = self.converted(x, "int")
            return self.combined(f"{self.other}({x.text})", type_, lambda a: a, x)
        if type_ == "int" and x.type == "other":
            return self.combined(f"int({x.text})", type_, lambda a: a, x)
        if type_ == "int":
            return self.combined(f"int({x.text})", type_, lambda a: np.trunc(a.astype(np.float64)), x)
        inner = f"int({x.text})" if x.type == "bool" and self.chance(0.5) else x.text
        return self.combined(f"{self.float}({inner})", type_, lambda a: a, x)

    def leaf(self, scope, type_):
        scalars = [v for v in scope if is_scalar(v.type)]
        same = [v for v in scalars if v.type == type_]
        if same and self.chance(0.8):
            return self.rng.choice(same)
        if scalars and self.chance(0.8):
            return self.converted(self.rng.choice(scalars), type_)
        return self.literal(type_)

    def scalar(self, scope, type_, depth):
        if depth <= 0 or self.chance(0.1):
            return self.leaf(scope, type_)
        if self.chance(0.25):
            element = self.element(scope, type_, depth)
            if element:
                return element
        if self.chance(0.12):
            return self.let(scope, type_, depth)
        if self.chance(0.15):
            return self.condition(scope, type_, depth)
        if type_ == "bool":
            return self.truth(scope, depth)
        return self.arithmetic(scope, type_, depth)

    def truth(self, scope, depth):
        kind = self.rng.choice(["compare", "compare", "&&", "||", "!"])
        if kind == "compare":
            type_ = self.rng.choice(["int", "int", "float", "other"])
            a, b = self.scalar(scope, type_, depth - 1), self.scalar(scope, type_, depth - 1)
            op, function = self.rng.choice([("<", np.less), ("<=", np.less_equal), (">", np.greater),
                                            (">=", np.greater_equal), ("==", np.equal), ("!=", np.not_equal)])
            return self.combined(f"({a.text} {op} {b.text})", "bool", function, a, b)
        a = self.scalar(scope, "bool", depth - 1)
        if kind == "!":
            return self.combined(f"(!{a.text})", "bool", np.logical_not, a)
        b = self.scalar(scope, "bool", depth - 1)
        function = np.logical_and if kind == "&&" else np.logical_or
        return self.combined(f"({a.text} {kind} {b.text})", "bool", function, a, b)

    def arithmetic(self, scope, type_, depth):
        a = self.scalar(scope, type_, depth - 1)
        if type_ != "float" and self.chance(0.5 if type_ == "other" else 0.1):
            return self.bits(scope, a, depth)
        kind = self.rng.choice(["+", "+", "-", "min", "max", "abs", "neg", "*", "square", "divide"])
        if kind == "abs":
            return self.combined(f"abs({a.text})", type_, np.abs, a)
        if kind == "neg":
            return self.combined(f"(-{a.text})", type_, np.negative, a)
        if kind == "*":
            b = self.literal(type_)
            return self.combined(f"({b.text} * {a.text})", type_, np.multiply, b, a)
        if kind == "divide" and type_ == "float":
            half = self.value("0.5", type_, 0.5, 0)
            return self.combined(f"(0.5 * {a.text})", type_, np.multiply, half, a)
        if kind == "divide":
            return self.divided(scope, a, depth)
        if kind == "square":
            name = self.name("d")
            return self.combined(f"(let {name} = {a.text} in {name}*{name})", type_, lambda d: d * d, a)
        b = self.scalar(scope, type_, depth - 1)
        function = {"+": np.add, "-": np.subtract, "min": np.minimum, "max": np.maximum}[kind]
        text = f"({a.text} {kind} {b.text})" if kind in "+-" else f"{kind}({a.text}, {b.text})"
        return self.combined(text, type_, function, a, b)

    def bits(self, scope, a, depth):
        """A shift by the right side modulo the bits of the type, or an operation on bits."""
        kind, type_ = self.rng.choice(["&", "^", "|", "~", "<<", ">>"]), a.type
        if kind == "~":
            return self.combined(f"(~{a.text})", type_, np.invert, a)
        b = self.scalar(scope, type_, depth - 1)
        bits = self.dtype[type_](8 * a.data.dtype.itemsize - 1)
        function = {"&": np.bitwise_and, "^": np.bitwise_xor, "|": np.bitwise_or,
                    "<<": lambda x, y: np.left_shift(x, y & bits),
                    ">>": lambda x, y: np.right_shift(x, y & bits)}[kind]
        return self.combined(f"({a.text} {kind} {b.text})", type_, function, a, b)

    def divided(self, scope, a, depth):
        """By a constant, or by what an `if` has found not to be 0."""
        op, function = self.rng.choice([("/", np.floor_divide), ("%", np.mod)])
        if self.chance(0.5):
            by = self.value(str(number := self.rng.choice([2, 3, 5, 7])), a.type, number, 0)
            return self.combined(f"({a.text} {op} {by.text})", a.type, function, a, by)
        by, other = self.scalar(scope, a.type, depth - 1), self.literal(a.type)
        return self.combined(f"(if {by.text} > 0 then {a.text} {op} {by.text} else {other.text})", a.type,
                             lambda x, y, z: np.where(y > 0, function(x, np.maximum(y, 1)), z), a, by, other)

    def let(self, scope, type_, depth):
        name = self.name("l")
        bound = self.scalar(scope, self.rng.choice(["int", type_]), depth - 1)
        used = Expr(name, bound.type, bound.data, bound.batch)
        body = self.scalar([*scope, used, used], type_, depth - 1)
        return Expr(f"(let {name} = {bound.text} in {body.text})", type_, body.data, body.batch)

    def condition(self, scope, type_, depth):
        cond = self.scalar(scope, "bool", depth - 1)
        a, b = self.scalar(scope, type_, depth - 1), self.scalar(scope, type_, depth - 1)
        return self.combined(f"(if {cond.text} then {a.text} else {b.text})", type_, np.where, cond, a, b)

    # Elements of arrays in scope --------------------------------------------------------

    def picked(self, x, index):
        """x[index], with indices out of bounds moved into them: nobody wants these."""
        batch = max(x.batch, index.batch)
        own = dims_of(x.type) - 1
        at = np.clip(lifted(index, batch), 0, x.type.length - 1)
        return each(lambda d: np.take_along_axis(*self.alike(d, at.reshape(at.shape + (1,) * (own + 1)), batch),
                                                 axis=batch).squeeze(batch), lifted(x, batch)), batch

    @staticmethod
    def alike(data, at, batch):
        common = np.broadcast_shapes(data.shape[:batch], at.shape[:batch])
        if np.prod(common, dtype=np.int64) * data.shape[batch] > EVALUATED_MAX:
            raise Reject
        rest = data.shape[batch + 1 :]
        return (np.broadcast_to(data, common + data.shape[batch:]),
                np.broadcast_to(at, common + (1,) + rest))

    def index(self, scope, depth):
        scalars = [v for v in scope if is_scalar(v.type)]
        ints = [v for v in scalars if v.type == "int"]
        i = self.rng.choice(ints) if ints else self.converted(self.rng.choice(scalars), "int")
        if depth > 1 and self.chance(0.2):
            return self.element(scope, "int", depth - 1) or i
        shift = self.rng.randint(-3, 3)
        if not shift:
            return i
        return self.combined(f"({i.text} {'+' if shift > 0 else '-'} {abs(shift)})", "int",
                             lambda a: a + np.int32(shift), i)

    def element(self, scope, type_, depth):
        """An element of an array in scope, that is there because of what is around it."""
        arrays = [v for v in scope if isinstance(v.type, Array) and v.type.elem == type_]
        rows = [v for v in scope if dims_of(v.type) == 2 and elem_type(v.type, 2) == type_]
        if rows and self.chance(0.5):
            x = self.rng.choice(rows)
            row = self.value(str(k := self.rng.randrange(x.type.length)), "int", k, 0)
            data, batch = self.picked(x, row)
            arrays = [Expr(f"{x.text}[{k}]", x.type.elem, data, batch)]
        if not arrays or not any(is_scalar(v.type) for v in scope):
            return None
        x, i = self.rng.choice(arrays), self.index(scope, depth)
        size, length = x.type.size, x.type.length
        kind = self.rng.choice(["clamp", "wrap", "if", "if", "else", "let"])
        if kind == "clamp" or kind == "wrap":
            text = f"min(max({i.text}, 0), {size} - 1)" if kind == "clamp" else f"{i.text} % {size}"
            at = self.combined(text, "int", (lambda a: np.clip(a, 0, length - 1)) if kind == "clamp"
                               else (lambda a: a % length), i)
            data, batch = self.picked(x, at)
            return self.value(f"{x.text}[{text}]", type_, data, batch)
        data, batch = self.picked(x, i)
        there = self.combined("", "bool", lambda a: (a >= 0) & (a < length), i)
        if not there.data.any():
            raise Reject  # the program would be refused
        element = Expr(f"{x.text}[{i.text}]", type_, data, batch)
        inside = f"{i.text} >= 0 && {i.text} < {size}"
        outside = f"{i.text} < 0 || {i.text} > {size} - 1"
        if type_ == "bool" and kind == "if":
            return self.combined(f"({inside} && {element.text})", type_, np.logical_and, there, element)
        if type_ == "bool" and kind == "else":
            return self.combined(f"({outside} || {element.text})", type_,
                                 lambda t, e: ~t | e, there, element)
        other = self.scalar(scope, type_, depth - 2)
        if kind == "let":
            name = self.name("e")
            used = Expr(name, type_, data, batch)
            body = self.scalar([*scope, used, used], type_, depth - 2)
            element = Expr(f"(let {name} = {element.text} in {body.text})", type_, body.data, body.batch)
        text = (f"(if {outside} then {other.text} else {element.text})" if kind == "else"
                else f"(if {inside} then {element.text} else {other.text})")
        return self.combined(text, type_, np.where, there, element, other)

    # Functions ------------------------------------------------------------------------

    def closed(self, body, batch, lengths):
        """What a function gives for all its iterations: axes of its batch become dimensions."""
        def one(data):
            shape = data.shape
            return np.broadcast_to(data, shape[:batch] + tuple(n for n, _ in lengths)
                                   + shape[batch + len(lengths) :])
        return each(one, lifted(body, batch + len(lengths))), array_type(lengths, body.type)

    def element_of(self, x, dims, name=None):
        return Expr(name or self.name("x"), elem_type(x.type, dims), x.data, x.batch + dims)

    def parts(self, x):
        """The components of a tuple, those of components too; else x."""
        if not isinstance(x.type, Tuple):
            return [x]
        return [p for i, t in enumerate(x.type.items)
                for p in self.parts(Expr(f"{x.text}.{i}", t, x.data[i], x.batch))]

    def parameter(self, x, dims):
        """The text of a function's parameters for an element of x, and what its body can use."""
        element = self.element_of(x, dims)
        if isinstance(element.type, Tuple) and self.chance(0.6):
            names = [self.name("x") for _ in element.type.items]
            items = [Expr(n, t, d, element.batch)
                     for n, t, d in zip(names, element.type.items, element.data)]
            return " ".join(names), [p for item in items for p in self.parts(item)]
        return element.text, self.parts(element)

    def body(self, given, scope, depth):
        """The body of a mapped function over what is given."""
        arrays = [v for v in given if isinstance(v.type, Array)]
        if arrays and depth > 0 and self.chance(0.7):
            x = self.rng.choice(arrays)
            return self.pipe(x, [*scope, *[v for v in given if v is not x]], depth - 1, self.rng.randint(1, 3))
        known = [*scope, *given, *given]
        for a in arrays:
            known.append(self.reduced(a, scope, depth - 1) if self.chance(0.4) else self.probe(a))
        known = [p for v in known for p in self.parts(v)]
        if self.chance(0.2):
            items = [self.scalar(known, self.rng.choice(["int", "float", "bool", "other"]), 2)
                     for _ in range(self.rng.randint(2, 3))]
            return self.tuple_of(items)
        result = self.scalar(known, self.rng.choice(["int", "int", "float", "float", "bool", "other"]),
                             self.rng.randint(1, 4))
        return self.as_function(known, result) if self.chance(0.1) else result

    def tuple_of(self, items):
        batch = max(i.batch for i in items)
        return Expr(f"({', '.join(i.text for i in items)})", Tuple(tuple(i.type for i in items)),
                    tuple(lifted(i, batch) for i in items), batch)

    def as_function(self, known, other):
        """A call of a function of the program, added to another value."""
        given = [v for v in known if is_scalar(v.type)][:3]
        if not given or other.type == "bool":
            return other
        inside = [Expr(self.name("p"), v.type, v.data, v.batch) for v in given]
        body = self.scalar(inside, other.type, 2)
        name = self.name("f")
        parameters = ", ".join(f"{p.text}: {self.type_name(p.type)}" for p in inside)
        self.functions.append(f"fun {name}({parameters}): {self.type_name(other.type)} = {body.text}")
        call = Expr(f"{name}({', '.join(v.text for v in given)})", body.type, body.data, body.batch)
        return self.combined(f"({call.text} + {other.text})", other.type, np.add, call, other)

    def probe(self, x):
        while isinstance(x.type, Array):
            k = self.rng.randrange(x.type.length)
            x = Expr(f"{x.text}[{k}]", x.type.elem, each(lambda d, b=x.batch: np.take(d, k, axis=b), x.data), x.batch)
        return x

    # Patterns that compute ----------------------------------------------------------------

    def map(self, x, scope, depth, dims=None):
        dims = dims or self.rng.randint(1, min(dims_of(x.type), 3))
        names, given = self.parameter(x, dims)
        body = self.body(given, scope, depth - 1)
        data, type_ = self.closed(body, x.batch, lengths_of(x.type, dims))
        pattern = "map" if dims == 1 else f"map{dims}"
        return Expr(self.call(pattern, [f"\\{names} -> {body.text}"], x.text), type_, data, x.batch)

    def fold(self, type_):
        """An operator, where it begins, and what NumPy does along an axis."""
        if type_ == "bool":
            return self.rng.choice([("&&", True, np.logical_and), ("||", False, np.logical_or)])
        if type_ == "other":
            op, function = self.rng.choice([("+", np.add), ("^", np.bitwise_xor), ("max", np.maximum)])
            return op, -100 if op == "max" and self.other in ("char", "short", "long") else 0, function
        return self.rng.choice([("+", 0, np.add), ("+", 0, np.add), ("max", -20000, np.maximum),
                                ("min", 20000, np.minimum)])

    def start(self, type_, value):
        return str(value).lower() if type_ == "bool" else f"{self.type_name(type_)}({value})"

    def folded(self, type_, fold, terms, batch, scan):
        _, start, function = fold
        if type_ != "other" and function is np.add and np.abs(terms).sum(axis=batch).max() > LARGEST:
            raise Reject
        data = function.accumulate(terms, axis=batch) if scan else function.reduce(terms, axis=batch)
        # A `max` may begin above all of its terms.
        return function(self.dtype[type_](start), data.astype(self.dtype[type_]))

    def reduced(self, x, scope, depth, scan=False):
        """A reduction or scan of all elements of an array, which is joined first."""
        while not scan and isinstance(x.type.elem, Array):
            x = self.join(x, 1)
        pattern = "scan" if scan else "reduce"
        if is_scalar(x.type.elem) and self.chance(0.5):
            fold = self.fold(x.type.elem)
            data = self.folded(x.type.elem, fold, x.data, x.batch, scan)
            return Expr(self.call(pattern, [fold[0], self.start(x.type.elem, fold[1])], x.text), x.type if scan else x.type.elem, data, x.batch)
        acc, element = self.name("acc"), self.element_of(x, 1)
        known = [*scope, *self.parts(element), *self.parts(element)]
        types = [self.rng.choice(["int", "float", "float", "bool", "other"])
                 for _ in range(self.rng.choice([1, 1, 1, 2, 3]))]
        folds = [self.fold(t) for t in types]
        terms = [self.scalar(known, t, self.rng.randint(0, 3)) for t in types]
        steps, data = [], []
        late = self.rng.choice([0, 0, 0, 1, 2])  # components that hold what the first one was before
        one = len(types) + late == 1
        for i, (type_, fold, term) in enumerate(zip(types, folds, terms)):
            op = fold[0]
            a = acc if one else f"{acc}.{i}"
            a, b = (term.text, a) if self.chance(0.3) else (a, term.text)
            steps.append(f"({a} {op} {b})" if op in OPERATORS else f"{op}({a}, {b})")
            all_terms, _ = self.closed(term, x.batch, lengths_of(x.type, 1))
            data.append(self.folded(type_, fold, all_terms, x.batch, scan))
            if i == 0:
                first = self.folded(type_, fold, all_terms, x.batch, True) if late else None
        for k in range(late):
            begin = np.full_like(np.take(first, [0], axis=x.batch), folds[0][1])
            first = np.concatenate([begin, np.delete(first, -1, axis=x.batch)], axis=x.batch)
            data.append(first if scan else np.take(first, -1, axis=x.batch))
            steps.append(f"{acc}.{len(types) - 1 + k if k else 0}")
        types, folds = types + types[:1] * late, folds + folds[:1] * late
        start = ", ".join(self.start(t, value) for t, (_, value, _) in zip(types, folds))
        result = types[0] if one else Tuple(tuple(types))
        text = self.call(pattern, [f"\\{acc} {element.text} -> " + (steps[0] if one else f"({', '.join(steps)})"),
                                   start if one else f"({start})"], x.text)
        return Expr(text, array_type(lengths_of(x.type, 1), result) if scan else result,
                    data[0] if one else tuple(data), x.batch)

    def iterate(self, x):
        """Steps of a stencil or of a map; each is drawn from the same state."""
        dims = dims_of(x.type)
        base = elem_type(x.type, dims)
        if dims > 2 or not is_scalar(base):
            raise Reject
        steps, name, state = self.rng.randint(1, 4), self.name("s"), None
        now = x
        for _ in range(steps):
            before = self.rng.getstate(), self.names
            state = Expr(name, x.type, now.data, x.batch)
            if self.chance(0.3):
                element = self.element_of(state, dims)
                cell = self.scalar([element], base, 2)
                y, pattern = state, "map" if dims == 1 else "map2"
            else:
                y = self.slide(self.pad(state, [], dims, around=1), dims, window=(3, 1))
                element = self.element_of(y, dims)
                cell = self.scalar([self.probe(element) for _ in range(3)], base, 3)
                pattern = "map" if dims == 1 else "map2"
            data, _ = self.closed(cell, x.batch, lengths_of(x.type, dims))
            now = Expr("", x.type, data, x.batch)
            after = self.rng.getstate(), self.names
            self.rng.setstate(before[0])
            self.names = before[1]
        self.rng.setstate(after[0])
        self.names = after[1]
        step = f"\\{name} -> {y.text} |> {pattern}(\\{element.text} -> {cell.text})"
        return Expr(self.call("iterate", [str(steps), step], x.text), x.type, now.data, x.batch)

    # Layouts ------------------------------------------------------------------------------

    def numbers(self, values):
        """Arguments of all dimensions, written once if they are the same."""
        same = all(v == values[0] for v in values) and self.chance(0.6)
        return [str(n) for v in (values[:1] if same else values) for n in (v if isinstance(v, tuple) else (v,))]

    def pad(self, x, scope, dims, around=None):
        mode = self.rng.choice(["constant", "constant", "clamp", "mirror", "wrap"])
        base = elem_type(x.type, dims)
        if not is_scalar(base) and mode == "constant":
            mode = "clamp"
        fill = None
        if mode == "constant":
            outer = [v for v in scope if v.type == base and v.batch <= x.batch and v.text.isidentifier()]
            fill = self.rng.choice(outer) if outer and self.chance(0.3) else self.literal(base, bare=True)
        data, lengths, widths = x.data, lengths_of(x.type, dims), []
        for k, (n, size) in enumerate(lengths):
            most = min(4, n) if mode in ("mirror", "wrap") else 4
            lo, hi = (around, around) if around else (self.rng.randint(0, most), self.rng.randint(0, most))
            widths.append((lo, hi))
            i = np.arange(-lo, n + hi)
            at = {"clamp": np.clip(i, 0, n - 1), "constant": np.clip(i, 0, n - 1), "wrap": i % n,
                  "mirror": np.where(i < 0, -1 - i, np.where(i < n, i, 2 * n - 1 - i))}[mode]
            axis = x.batch + k
            data = each(lambda d, at=at, axis=axis: np.take(d, at, axis=axis), data)
            if fill:
                inside = ((i >= 0) & (i < n)).reshape((-1,) + (1,) * (data.ndim - axis - 1))
                other = lifted(fill, data.ndim)
                data = np.where(inside, data, other).astype(data.dtype)
            lengths[k] = (n + lo + hi, f"({size} + {lo + hi})")
        pattern = "pad" if dims == 1 else f"pad{dims}"
        text = self.call(pattern, [*self.numbers(widths), fill.text if fill else mode], x.text)
        return Expr(text, array_type(lengths, base), data, x.batch)

    def slide(self, x, dims, window=None):
        data, lengths, windows, outer = x.data, lengths_of(x.type, dims), [], []
        for k, (n, size) in enumerate(lengths):
            width = window[0] if window else self.rng.randint(1, min(n, 4))
            step = window[1] if window else self.rng.choice([s for s in range(1, 5) if (n - width) % s == 0])
            windows.append((width, step))
            outer.append(((n - width) // step + 1, f"(({size} - {width})/{step} + 1)"))
            at = np.arange(outer[k][0])[:, None] * step + np.arange(width)
            data = each(lambda d, at=at, k=k: np.take(d, at, axis=x.batch + 2 * k), data)
        data = self.outer_first(data, x.batch, dims)
        inner = array_type([(w, w) for w, _ in windows], elem_type(x.type, dims))
        text = self.call("slide" if dims == 1 else f"slide{dims}", self.numbers(windows), x.text)
        return Expr(text, array_type(outer, inner), data, x.batch)

    @staticmethod
    def outer_first(data, batch, dims):
        """Axes outer, inner, outer, inner become outer, outer, inner, inner."""
        def one(d):
            order = [*range(batch), *range(batch, batch + 2 * dims, 2),
                     *range(batch + 1, batch + 2 * dims, 2), *range(batch + 2 * dims, d.ndim)]
            if d.size > EVALUATED_MAX:
                raise Reject
            return d.transpose(order)
        return each(one, data)

    def split(self, x, dims):
        lengths, sizes, outer = lengths_of(x.type, dims), [], []
        for n, size in lengths:
            sizes.append(self.rng.choice([z for z in range(1, n + 1) if n % z == 0]))
            outer.append((n // sizes[-1], f"({size}/{sizes[-1]})"))
        shape = [m for (n, _), z in zip(lengths, sizes) for m in (n // z, z)]
        data = each(lambda d: d.reshape(d.shape[: x.batch] + tuple(shape) + d.shape[x.batch + dims :]), x.data)
        inner = array_type([(z, z) for z in sizes], elem_type(x.type, dims))
        pattern = "split" if dims == 1 else f"split{dims}"
        return Expr(self.call(pattern, [str(z) for z in sizes], x.text), array_type(outer, inner),
                    self.outer_first(data, x.batch, dims), x.batch)

    def join(self, x, dims):
        lengths = lengths_of(x.type, 2 * dims)
        whole = [(a * b, f"({p}*{q})") for (a, p), (b, q) in zip(lengths[:dims], lengths[dims:])]
        def one(d):
            b = x.batch
            order = [*range(b), *[a for k in range(dims) for a in (b + k, b + dims + k)], *range(b + 2 * dims, d.ndim)]
            return d.transpose(order).reshape(d.shape[:b] + tuple(n for n, _ in whole) + d.shape[b + 2 * dims :])
        return Expr(self.call("join" if dims == 1 else f"join{dims}", [], x.text),
                    array_type(whole, elem_type(x.type, 2 * dims)), each(one, x.data), x.batch)

    def rest(self, x, scope, depth):
        """Blocks of a length that does not divide: padded, split, computed, and cut."""
        n, block = x.type.length, self.rng.randint(2, 5)
        more = -n % block
        mode = self.literal(x.type.elem, bare=True) if is_scalar(x.type.elem) else None
        mode_text = mode.text if mode else "clamp"
        padded = f"({x.text} |> pad(0, {more}, {mode_text}))"
        at = np.minimum(np.arange(n + more), n - 1)
        data = each(lambda d: np.take(d, at, axis=x.batch), x.data)
        if mode:
            tail = (np.arange(n + more) >= n).reshape((-1,) + (1,) * (data.ndim - x.batch - 1))
            data = np.where(tail, mode.data, data).astype(data.dtype)
        count_ = (n + more) // block
        data = each(lambda d: d.reshape(d.shape[: x.batch] + (count_, block) + d.shape[x.batch + 1 :]), data)
        size = f"(({x.type.size} + {more})/{block})"
        blocks = Expr(f"({padded} |> split({block}))", Array(count_, size, Array(block, str(block), x.type.elem)),
                      data, x.batch)
        if self.chance(0.4):
            return self.map(blocks, scope, depth, 1)
        element = self.element_of(blocks, 1)
        inner = self.map(element, scope, depth - 1, 1)
        data, type_ = self.closed(inner, x.batch, lengths_of(blocks.type, 1))
        mapped = Expr(f"({blocks.text} |> map(\\{element.text} -> {inner.text}))", type_, data, x.batch)
        whole = self.join(mapped, 1)
        cut = each(lambda d: d[(slice(None),) * x.batch + (slice(0, n),)], whole.data)
        return Expr(f"({whole.text} |> take({n}))", Array(n, str(n), whole.type.elem), cut, x.batch)

    def permuted(self, x, gather):
        n, size, i = x.type.length, x.type.size, self.name("i")
        at, shift = np.arange(n), self.rng.randint(0, n + 3)
        ways = [(f"{size} - 1 - {i}", n - 1 - at), (f"({i} + {shift}) % {size}", (at + shift) % n)]
        for z in range(2, n):
            if n % z == 0:
                ways.append((f"{i} % {z} * {n // z} + {i} / {z}", at % z * (n // z) + at // z))
                break
        if gather:
            ways += [(f"{i} / 2", at // 2), (f"min({i} + 2, {size} - 1)", np.minimum(at + 2, n - 1)),
                     (f"{i} * 3 % {size}", at * 3 % n), (f"max({i} - {shift}, 0)", np.maximum(at - shift, 0)),
                     (f"min({i} ^ 1, {size} - 1)", np.minimum(at ^ 1, n - 1)),
                     (f"(if {i} < {shift} then 0 else {i} >> 1)", np.where(at < shift, 0, at >> 1))]
        text, to = self.rng.choice(ways)
        source = to if gather else np.argsort(to)
        return Expr(self.call("gather" if gather else "scatter", [f"\\{i} -> {text}"], x.text), x.type,
                    each(lambda d: np.take(d, source, axis=x.batch), x.data), x.batch)

    def part(self, x, dims, take):
        lengths, numbers, cut = lengths_of(x.type, dims), [], []
        for k, (n, size) in enumerate(lengths):
            number = self.rng.randint(1, n) if take else self.rng.randint(0, n - 1)
            numbers.append(number)
            cut.append(slice(0, number) if take else slice(number, None))
            lengths[k] = (number, number) if take else (n - number, f"({size} - {number})")
        pattern = ("take" if take else "drop") + ("" if dims == 1 else str(dims))
        data = each(lambda d: d[(slice(None),) * x.batch + tuple(cut)], x.data)
        return Expr(self.call(pattern, self.numbers(numbers), x.text), array_type(lengths, elem_type(x.type, dims)),
                    data, x.batch)

    def transpose(self, x):
        outer, inner = x.type, x.type.elem
        return Expr(self.call("transpose", [], x.text),
                    Array(inner.length, inner.size, Array(outer.length, outer.size, inner.elem)),
                    each(lambda d: np.swapaxes(d, x.batch, x.batch + 1), x.data), x.batch)

    def array(self, x, scope, depth):
        """An array computed from its index, perhaps of elements of x."""
        n, size = x.type.length, x.type.size
        i = Expr(self.name("i"), "int", np.arange(n, dtype=np.int32).reshape((1,) * x.batch + (n,)), x.batch + 1)
        type_ = elem_type(x.type, dims_of(x.type))
        known = [*scope, i, i] + ([x] if x.text.isidentifier() else [])
        body = self.scalar(known, type_ if is_scalar(type_) else "int", min(depth, 3))
        data, result = self.closed(body, x.batch, [(n, size)])
        return Expr(f"array({size}, \\{i.text} -> {body.text})", result, data, x.batch)

    def zip(self, x, scope, depth):
        same = [v for v in scope if isinstance(v.type, Array) and v.type.size == x.type.size]
        others = []
        for _ in range(self.rng.randint(1, 2)):
            if same and self.chance(0.6):
                others.append(self.rng.choice(same))
            elif x.text.isidentifier() and self.chance(0.5):
                others.append(self.map(x, scope, depth - 1, 1))
            else:
                others.append(self.array(x, scope, depth))
        arrays = [x, *others]
        self.rng.shuffle(arrays)
        data = tuple(lifted(a, x.batch) for a in arrays)
        return Expr(f"zip({', '.join(a.text for a in arrays)})",
                    Array(x.type.length, x.type.size, Tuple(tuple(a.type.elem for a in arrays))), data, x.batch)

    def zip2(self, x, scope):
        lengths = lengths_of(x.type, 2)
        i, j = ([Expr(self.name("i"), "int", np.arange(n, dtype=np.int32).reshape((1,) * x.batch + shape), x.batch + 2)
                 for (n, _), shape in zip(lengths, [(lengths[0][0], 1), (1, lengths[1][0])])])
        body = self.scalar([*scope, i, j, i, j], self.rng.choice(["int", "float", "bool"]), 3)
        data, _ = self.closed(body, x.batch, lengths)
        other = f"array2({lengths[0][1]}, {lengths[1][1]}, \\{i.text} {j.text} -> {body.text})"
        return Expr(f"zip2({x.text}, {other})", array_type(lengths, Tuple((elem_type(x.type, 2), body.type))),
                    (x.data, data), x.batch)

    def layout(self, x, scope, depth):
        dims, elem = dims_of(x.type), x.type.elem
        kinds = ["pad", "pad", "slide", "slide", "gather", "scatter", "take", "drop", "zip", "zip", "split", "array",
                 "rest", "rest"]
        if dims >= 2:
            kinds += ["pad2", "pad2", "slide2", "slide2", "take2", "drop2", "join", "join", "transpose", "transpose",
                      "inner", "inner", "zip2", "split2"]
        if dims >= 3:
            kinds += ["pad3", "slide3", "drop3", "inner"]
        if dims >= 4:
            kinds += ["join2", "join2"]
        if isinstance(elem, Tuple):
            kinds += ["unzip", "unzip"]
        kind = self.rng.choice(kinds)
        word, number = kind.rstrip("123"), int(kind[len(kind.rstrip("123")) :] or 1)
        if kind == "inner":
            element = self.element_of(x, 1)
            inner = self.layout(element, scope, depth - 1)
            data, type_ = self.closed(inner, x.batch, lengths_of(x.type, 1))
            return Expr(self.call("map", [f"\\{element.text} -> {inner.text}"], x.text), type_, data, x.batch)
        if kind == "unzip":
            k = self.rng.randrange(len(elem.items))
            return Expr(f"unzip({x.text}).{k}", Array(x.type.length, x.type.size, elem.items[k]), x.data[k], x.batch)
        return {"pad": lambda: self.pad(x, scope, number), "slide": lambda: self.slide(x, number),
                "gather": lambda: self.permuted(x, True), "scatter": lambda: self.permuted(x, False),
                "take": lambda: self.part(x, number, True), "drop": lambda: self.part(x, number, False),
                "zip": lambda: self.zip2(x, scope) if number == 2 else self.zip(x, scope, depth),
                "split": lambda: self.split(x, number), "join": lambda: self.join(x, number),
                "transpose": lambda: self.transpose(x), "array": lambda: self.array(x, scope, depth),
                "rest": lambda: self.rest(x, scope, depth)}[word]()

    # Programs -----------------------------------------------------------------------------

    def step(self, x, scope, depth):
        plain = all(is_scalar(t) for t in (x.type.elem.items if isinstance(x.type.elem, Tuple) else [x.type.elem]))
        draw = self.rng.random()
        if draw < 0.45:
            return self.layout(x, scope, depth)
        if draw < 0.72 and depth > 0:
            return self.map(x, scope, depth)
        if draw < 0.85 and plain:
            return self.reduced(x, scope, depth)
        if draw < 0.93 and plain:
            return self.reduced(x, scope, depth, scan=True)
        return self.iterate(x)

    def pipe(self, x, scope, depth, steps):
        """Some patterns one after another; some of them bound by a let."""
        lets = []
        for _ in range(steps):
            if not isinstance(x.type, Array):
                break
            if lets == [] and not x.text.isidentifier() and self.chance(0.08):
                lets.append(f"let {(name := self.name('s'))} = {x.text} in ")
                x = Expr(name, x.type, x.data, x.batch)
                scope = [*scope, x]
            y = self.attempt(x, scope, depth)
            if not y:
                break
            x = y
        text = f"({''.join(lets)}{x.text})" if lets else x.text
        return Expr(text, x.type, x.data, x.batch)

    def attempt(self, x, scope, depth):
        for _ in range(6):
            functions = len(self.functions)
            try:
                y = self.step(x, scope, depth)
                if count(y.type) <= ELEMENTS_MAX:
                    return y
            except Reject:
                pass
            del self.functions[functions:]
        return None

    def dimension(self, long):
        symbolic = self.chance(0.8)
        if symbolic and self.sizes and self.chance(0.4):
            name = self.rng.choice(list(self.sizes))
            return self.sizes[name], name
        n = self.rng.choice([17, 31, 33, 64, 67, 101, 131] if long else [1, 2, 3, 5, 6, 7, 8, 9, 11, 13])
        if not symbolic or len(self.sizes) == 4:
            return n, str(n)
        name = "NMKL"[len(self.sizes)]
        self.sizes[name] = n
        return n, name

    def input(self, name, numbers):
        dims = self.rng.choice([1, 1, 2, 2, 3])
        base = self.rng.choice(["int", "int", "float", "float", "bool", "other", "other",
                                Tuple(("int", "float"))])
        type_ = array_type([self.dimension(dims == 1) for _ in range(dims)], base)
        if count(type_) > ELEMENTS_MAX:
            type_ = type_.elem
        return Expr(name, type_, self.random_data(type_, numbers), 0)

    def random_data(self, type_, numbers, shape=()):
        if isinstance(type_, Array):
            return self.random_data(type_.elem, numbers, (*shape, type_.length))
        if isinstance(type_, Tuple):
            return tuple(self.random_data(t, numbers, shape) for t in type_.items)
        data = {"int": lambda: numbers.integers(-9, 10, shape), "float": lambda: numbers.integers(-16, 17, shape) / 4,
                "bool": lambda: numbers.integers(0, 2, shape), "other": lambda: numbers.integers(0, 100, shape)}[type_]()
        return np.asarray(data).astype(self.dtype[type_])


@dataclass
class Program:
    seed: int
    text: str
    sizes: dict
    inputs: list  # pairs of a name and an array, a plane of a tuple each
    outputs: list  # arrays


def planes(expr):
    data = leaves(expr.data)
    return [(expr.text if len(data) == 1 else f"{expr.text}_{k}", np.ascontiguousarray(d))
            for k, d in enumerate(data)]


def draw(seed):
    """The program of a seed."""
    for attempt in range(200):
        g = Generator(seed * 1000 + attempt)
        numbers = np.random.default_rng([seed, attempt])
        inputs = [g.input(name, numbers) for name in "abc"[: g.rng.randint(1, 3)]]
        if g.chance(0.3):
            type_ = g.rng.choice(["int", "float"])
            inputs.append(Expr("q", type_, g.random_data(type_, numbers), 0))
        try:
            x = g.rng.choice([i for i in inputs if isinstance(i.type, Array)])
            result = g.pipe(x, inputs, g.rng.randint(2, 4), g.rng.randint(2, 6))
        except Reject:
            continue
        if result.text == x.text or count(result.type) > ELEMENTS_MAX:
            continue
        parameters = ", ".join(f"{i.text}: {g.type_text(i.type)}" for i in inputs)
        text = (f"size {', '.join(g.sizes)}\n" if g.sizes else "") + "".join(f + "\n" for f in g.functions)
        text += f"def main({parameters}) =\n  {result.text}\n"
        outputs = [np.ascontiguousarray(d).astype(g.dtype[t])
                   for d, t in zip(leaves(result.data), leaf_types(result.type))]
        return Program(seed, text, g.sizes, [p for i in inputs for p in planes(i)], outputs)
    raise RuntimeError(f"no program from seed {seed}")
