# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What the property suites (test_property_<family>.py) draw: shapes, element
types, layouts and values; and how they compare.

Hypothesis draws the structure and a seed, NumPy the elements: so that an
example takes no longer with a thousand elements than with one.
HOLDFAST_PROPERTY_EXAMPLES sets the number of examples per function (50 by
default; the same ones in every run).
"""

import dataclasses
import os

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import holdfast

EXAMPLES = int(os.environ.get("HOLDFAST_PROPERTY_EXAMPLES", 50))
# For @given: the same examples in every run, without limits on their time.
fixed = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = ["bool", *INTEGERS, *FLOATS]
ALL = [*REAL, *COMPLEX]
CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 2e-5,
    "complex64": 1e-4,
}
BFLOAT16_MAX = 3.3895313892515355e38

# Functions that have a property, for docs/ops.md.
COVERED = set()


def covers(*names):
    """Notes that the properties of the calling module run these functions."""
    COVERED.update(names)


def numpy_type(dtype):
    """NumPy's type that holds the elements: float32 for bfloat16."""
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def category(dtype):
    return 2 if dtype == "bfloat16" else CATEGORY[np.dtype(dtype).kind]


def promoted(*operands):
    """PyTorch's result type of (dtype, rank) pairs: the highest category
    decides, and in it tensors with dimensions before those without."""
    top = max(category(d) for d, _ in operands)
    dims = [d for d, rank in operands if rank]
    high = [d for d in dims if category(d) == top]
    if dims and not high:
        # Only tensors without dimensions have the top category.
        zeros = [d for d, _ in operands if category(d) == top]
        if top == 3:
            double = "float64" in dims or "complex128" in zeros
            if max(category(d) for d in dims) == 2:
                double = "float64" in dims
            return "complex128" if double else "complex64"
        return joined(zeros)
    return joined(dims or [d for d, _ in operands], top)


def joined(dtypes, top=None):
    top = max(map(category, dtypes)) if top is None else top
    if top == 3:
        double = any(d in ("float64", "complex128") for d in dtypes)
        return "complex128" if double else "complex64"
    chosen = {d for d in dtypes if category(d) == top}
    if chosen == {"bfloat16"}:
        return "bfloat16"
    return np.result_type(*(numpy_type(d) for d in chosen)).name


@st.composite
def shapes(draw, min_rank=0, max_rank=5, min_size=0, long=True):
    """Mostly small; now and then one size beyond a vector's or a block's."""
    rank = draw(st.integers(min_rank, max_rank))
    shape = [draw(st.integers(min_size, 4)) for _ in range(rank)]
    if long and 0 < rank < 4 and draw(st.integers(0, 5)) == 5:
        shape[draw(st.integers(0, rank - 1))] = draw(
            st.sampled_from([7, 16, 17, 33, 100, 1025 if rank < 3 else 40])
        )
    return tuple(shape)


@st.composite
def broadcasting(draw, count=2, max_rank=5, min_size=0):
    """Shapes that broadcast together."""
    common = draw(shapes(0, max_rank, min_size))
    found = []
    for _ in range(count):
        start = draw(st.integers(0, len(common)))
        found.append(
            tuple(1 if draw(st.integers(0, 3)) == 3 else n for n in common[start:])
        )
    return found


def real_elements(rng, dtype, size, values):
    """Elements of a real type. values: "plain" (small numbers), "special" (NaN,
    infinities and signed zeros among them), "extreme" (the type's limits too)."""
    kind = numpy_type(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, size).astype(bool)
    if kind.kind in "iu":
        low = 0 if kind.kind == "u" else -6
        x = rng.integers(low, 9, size).astype(kind)
        rare = [np.iinfo(kind).min, np.iinfo(kind).max, 0, 1]
        odd = rng.random(size) < (0.25 if values == "extreme" else 0)
        return np.where(odd, rng.choice(np.array(rare, kind), size), x)
    x = rng.uniform(-3, 3, size)
    if rng.integers(2):  # halves: equals, ties, whole numbers
        x = np.round(x * 2) / 2
    x = x.astype(kind)
    rare = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf]
    if values == "extreme":
        limits = np.finfo(kind)
        largest = BFLOAT16_MAX if dtype == "bfloat16" else limits.max
        rare += [largest, -largest, limits.tiny, 1e4, -60000.0]
    odd = rng.random(size) < (0 if values == "plain" else 0.2)
    x = np.where(odd, rng.choice(np.array(rare, kind), size), x)
    if dtype == "bfloat16":  # what its 8 bits of precision can say
        x = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return x


def elements(rng, dtype, shape, values):
    size = int(np.prod(shape))
    if dtype.startswith("complex"):
        part = "float32" if dtype == "complex64" else "float64"
        real, imaginary = (real_elements(rng, part, size, values) for _ in range(2))
        x = np.empty(size, dtype)
        x.real, x.imag = real, imaginary
    else:
        x = real_elements(rng, dtype, size, values)
    return x.reshape(shape)


@dataclasses.dataclass
class Drawn:
    """The same elements in NumPy and in Holdfast, with the same strides.

    storage: contiguous array; steps: views to take, as (method, arguments).
    """

    dtype: str
    storage: np.ndarray
    layout: str
    detail: tuple

    @property
    def array(self):
        """Real bfloat16 elements are float32 here."""
        return self.view(self.storage, np.transpose, np.broadcast_to)

    @property
    def tensor(self):
        made = holdfast.from_numpy(self.storage.copy())
        if self.dtype == "bfloat16":
            made = made.to(holdfast.bfloat16)
        return self.view(made, holdfast.permute, holdfast.broadcast_to)

    def view(self, x, permute, broadcast):
        if self.layout == "permuted":
            return permute(x, self.detail)
        if self.layout == "stepped":
            dim, start, stop, step = self.detail
            return x[(slice(None),) * dim + (slice(start, stop, step),)]
        if self.layout == "expanded":
            return broadcast(x, self.detail)
        return x

    @property
    def exact(self):
        """The array in the widest type of its kind."""
        kind = numpy_type(self.dtype).kind
        wide = {"f": "float64", "c": "complex128"}.get(kind)
        return self.array.astype(wide) if wide else self.array

    def __repr__(self):
        shape = list(self.array.shape)
        text = f"{self.dtype}{shape} {self.layout} {self.detail}"
        return text + (f" {self.array.tolist()}" if self.array.size <= 40 else "")


@st.composite
def drawn(draw, dtypes=REAL, shape=None, values=("plain", "special", "extreme")):
    """A Drawn of one of dtypes; shape: a tuple or a strategy of them."""
    dtype = draw(st.sampled_from(dtypes)) if not isinstance(dtypes, str) else dtypes
    if shape is None:
        shape = shapes()
    shape = shape if isinstance(shape, tuple) else draw(shape)
    kind = values if isinstance(values, str) else draw(st.sampled_from(values))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    layouts = ["contiguous"]
    if len(shape):
        layouts += ["stepped", "expanded"] + ["permuted"] * (len(shape) > 1)
    layout, stored, detail = draw(st.sampled_from(layouts)), list(shape), ()
    if layout == "permuted":
        detail = tuple(draw(st.permutations(range(len(shape)))))
        for i, d in enumerate(detail):
            stored[d] = shape[i]
    elif layout == "stepped":
        dim = draw(st.integers(0, len(shape) - 1))
        start, step = draw(st.integers(0, 2)), draw(st.integers(1, 3))
        stop = start + step * shape[dim]
        stored[dim] = stop + draw(st.integers(0, 1))
        detail = (dim, start, stop, step)
    elif layout == "expanded":
        stored[draw(st.integers(0, len(shape) - 1))] = 1
        detail = tuple(shape)
    return Drawn(dtype, elements(rng, dtype, tuple(stored), kind), layout, detail)


def dims_of(rank):
    """A dimension of a tensor of this rank, counted from either end."""
    return st.integers(-max(rank, 1), max(rank, 1) - 1)


def as_array(tensor):
    tensor = tensor.detach()
    if tensor.dtype is holdfast.bfloat16:
        tensor = tensor.float()
    return np.array(tensor.numpy())


def rounded(expected, dtype):
    """expected in the type of the result, as far as NumPy has it."""
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            x = np.asarray(expected, "float64")
            # Half a step above the largest number rounds to infinity.
            far = np.abs(x) >= BFLOAT16_MAX * (1 + 2**-9)
            return np.where(far, np.copysign(np.inf, x), x).astype("float32")
        return np.asarray(expected).astype(numpy_type(dtype))


def check(result, expected, dtype, tolerance=None, absolute=None):
    """Element type, shape and values; NaN equals NaN. dtype None: not looked at."""
    name = str(result.dtype).split(".")[-1]
    assert name == (dtype or name), f"{name}, expected {dtype}"
    expected = np.asarray(expected)
    assert tuple(result.shape) == expected.shape
    got, expected = as_array(result), rounded(expected, name)
    if category(name) < 2 or tolerance == 0:
        np.testing.assert_array_equal(got, expected)
        return
    base = TOLERANCE.get(name, 1e-9)
    rtol = base if tolerance is None else max(base, tolerance)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, expected, rtol, absolute or rtol)
