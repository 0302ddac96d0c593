# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Every op case against PyTorch in the same process: values, element types,
shapes, and whether there is an error, over element types and layouts.

A case's function takes the module it calls, so PyTorch runs the same line.
"""

import warnings

import numpy as np
import pytest
from all_op_cases import CASES
from torch_differences import (
    COMPLEX,
    DIFFERENCES,
    NOT_IN_TORCH,
    ROUNDED_ON_THE_WAY,
)

import holdfast

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

REAL = ["bool", "uint8", "int8", "int16", "int32", "int64"]
REAL += ["float16", "bfloat16", "float32", "float64"]
DTYPES = [*REAL, *COMPLEX]
# Relative and absolute: two orders of summation, one rounding.
TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 4e-2,
    "float32": 2e-4,
    "complex64": 2e-4,
}
LAYOUTS = ["transposed", "stepped"]


def cast(array, dtype):
    """The array in an element type that NumPy has; bfloat16 as float32."""
    if dtype in ("float16", "float32", "bfloat16", "float64"):
        with np.errstate(over="ignore"):
            return array.astype("float32" if dtype == "bfloat16" else dtype)
    if dtype.startswith("complex"):
        with np.errstate(all="ignore"):
            imaginary = array[..., ::-1] if array.ndim else array
            return (array + 0.5j * imaginary).astype(dtype)
    whole = np.nan_to_num(array * 2, nan=0, posinf=3, neginf=-3).astype("int64")
    return (np.abs(whole) if dtype == "uint8" else whole).astype(dtype)


def cast_inputs(arrays, dtype):
    """Floats become `dtype`; integers stay, unless there is nothing else."""
    floats = [a.dtype == np.float64 for a in arrays]
    if not any(floats):
        floats = [a.dtype == np.int64 for a in arrays]
    return [
        (cast(a.astype(float), dtype), dtype) if f else (a, None)
        for a, f in zip(arrays, floats)
    ]


def laid_out(tensor, layout, module):
    """The same values with other strides."""
    if layout == "transposed" and tensor.dim() > 1:
        dims = list(range(tensor.dim()))[::-1]
        return tensor.permute(*dims).contiguous().permute(*dims)
    if layout == "stepped" and tensor.dim():
        return module.stack([tensor, tensor], -1).flatten(-2)[..., 1::2]
    return tensor


def tensors(module, inputs, layout):
    made = []
    for array, dtype in inputs:
        tensor = module.from_numpy(np.array(array, order="C"))
        if dtype == "bfloat16":
            tensor = tensor.to(module.bfloat16)
        made.append(laid_out(tensor, layout, module))
    return made


def leaves(result):
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def plain(value):
    """(element type, NumPy array) of a result, which may be a number."""
    if isinstance(value, (holdfast.Tensor, torch.Tensor)):
        name = str(value.dtype).split(".")[-1]
        value = value.detach()
        if name == "bfloat16":
            value = value.float()
        if isinstance(value, torch.Tensor):
            value = value.resolve_conj().resolve_neg()
        return name, np.array(value.numpy())
    return type(value).__name__, np.asarray(value)


def outcome(module, case, inputs, layout):
    """The results as plain values, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = case.ours(module, *tensors(module, inputs, layout))
            return [plain(leaf) for leaf in leaves(result) if leaf is not None]
    except Exception as e:  # whatever it is, it is the outcome
        return e


def absent(error):
    """PyTorch 1.13 has no such function, or (on the CPU) no such kernel."""
    return isinstance(error, (AttributeError, NotImplementedError)) or any(
        words in str(error)
        for words in (
            "not implemented for",
            "not supported",
            "unexpected keyword argument",
            "Unknown type",
        )
    )


def difference(ours, theirs, op):
    """None, or what differs in a word and in full."""
    if isinstance(theirs, Exception):
        if isinstance(ours, Exception) or absent(theirs):
            return None
        return "accepted", f"PyTorch raises {type(theirs).__name__}: {theirs}"
    if isinstance(ours, Exception):
        return "refused", f"{type(ours).__name__}: {ours}"
    if len(ours) != len(theirs):
        return "count", f"{len(ours)} results, PyTorch has {len(theirs)}"
    for (our_type, x), (their_type, y) in zip(ours, theirs):
        if our_type != their_type:
            return "dtype", f"{our_type}, PyTorch has {their_type}"
        if x.shape != y.shape:
            return "shape", f"{x.shape}, PyTorch has {y.shape}"
        tolerance = TOLERANCE.get(our_type, 1e-7)
        if x.dtype.kind in "fc":
            largest = np.abs(y).max(initial=1) if op in ROUNDED_ON_THE_WAY else 1
            same = np.allclose(x, y, tolerance, tolerance * largest, equal_nan=True)
        else:
            same = np.array_equal(x, y)
        if not same:
            return "values", f"{x.tolist()}, PyTorch has {y.tolist()}"
    return None


def not_complex_yet(kind, ours):
    """A row of the op table without complex numbers, by name: docs/design.md
    has them among the differences."""
    return kind == "refused" and (
        "not implemented for 'Complex" in ours or "Got Complex" in ours
    )


def variants(arrays):
    """(element type, layout) pairs; None: as the case has it."""
    kinds = {a.dtype for a in arrays}
    for main in ("float64", "int64"):
        if np.dtype(main) in kinds:
            return [(dtype, "") for dtype in DTYPES] + [
                (main, layout) for layout in LAYOUTS
            ]
    return [(None, "")]


@pytest.fixture(scope="module", autouse=True)
def session(daemon):
    with holdfast.connect(daemon.address("shm"), default=True):
        yield


OPS = list(dict.fromkeys(case.op for case in CASES if not case.random))


@pytest.mark.parametrize("op", OPS)
def test_agrees_with_torch(op):
    wrong, used, compared = [], set(), 0
    rows = [row for row in DIFFERENCES if op in row.ops.split()]
    for case in CASES:
        if case.op != op or case.random:
            continue
        arrays = case.arrays()
        for dtype, layout in variants(arrays):
            inputs = [(array, None) for array in arrays]
            if dtype:
                inputs = cast_inputs(arrays, dtype)
            ours = outcome(holdfast, case, inputs, layout)
            theirs = outcome(torch, case, inputs, layout)
            compared += not (isinstance(theirs, Exception) and absent(theirs))
            found = difference(ours, theirs, op)
            if found is None:
                continue
            kind, text = found
            known = [r for r in rows if r.covers(op, kind, dtype, case.name)]
            used.update(known)
            if not known and not not_complex_yet(kind, text):
                wrong.append(f"{case.name} {dtype} {layout}: {kind}: {text}")
    assert not wrong, "\n".join(wrong)
    always = {row for row in rows if not row.on_some}
    assert not always - used, "rows of torch_differences.py that do not differ"
    assert (compared == 0) == (op in NOT_IN_TORCH), f"{compared} runs of PyTorch's"


def test_the_table_names_ops():
    named = {op for row in DIFFERENCES for op in row.ops.split()} | NOT_IN_TORCH
    assert named <= set(OPS), named - set(OPS)
