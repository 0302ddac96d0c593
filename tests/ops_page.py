# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/ops.md: every public function, and which checks run on it, from
the lists that the checks themselves use.

    ./dev python tests/ops_page.py
"""

import collections
import pathlib

import test_property_elementwise  # noqa: F401
import test_property_index  # noqa: F401
import test_property_linalg  # noqa: F401
import test_property_reduce  # noqa: F401
import test_property_shapes  # noqa: F401
import test_property_sort  # noqa: F401
from all_op_cases import CASES
from property_strategies import COVERED
from torch_differences import NOT_IN_TORCH

import holdfast
from holdfast import reference

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "ops.md"
MARKS = "ntpg2bfo"
HEAD = """# Functions

Every public function of `holdfast`, `holdfast.nn.functional`, `holdfast.linalg`,
`holdfast.fft` and `holdfast.special`, and the checks that run on it:

- **n** its cases (`tests/op_cases*.py`) against NumPy or SciPy, or of random numbers
  against their distribution;
- **t** the same cases against PyTorch 1.13, over element types and layouts
  (`tests/test_torch_agreement.py`; differences are in `tests/torch_differences.py`);
- **p** randomly drawn shapes, types, layouts and values
  (`tests/test_property_*.py`);
- **g** gradients against finite differences in float64, **2** second derivatives;
- **b** both transports, with results equal to the last bit;
- **f** arbitrary arguments, which must not harm the daemon
  (`tests/test_fuzz_ops.py`);
- **o** a test of its own.

A synonym has its function's checks. A *primitive* is a row of the op table; a
*composite* is made of such.

Written by `./dev python tests/ops_page.py`; tests fail when it is out of date and
when a function has no check.

{count} functions, {primitives} primitives, {counts}.

| function | kind | checks | what it does |
|---|---|---|---|
"""

# What is no function of tensors, or returns none, and the file of its test.
OWN_TESTS = {
    "python_client/tests/test_low_rank.py": "pca_lowrank svd_lowrank",
    "tests/test_run.py": "compile",
    "python_client/tests/test_newer_namespaces.py": "get_device get_device_module",
    "tests/faults/test_cancel.py": "cancel",
    "python_client/tests/test_interop.py": "from_dlpack to_dlpack",
    "python_client/tests/test_fake_quantization.py": """
        fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
        """,
    "python_client/tests/test_memory.py": """
        max_memory_allocated memory_allocated memory_reserved reset_peak_memory_stats
        """,
    "python_client/tests/test_default_dtype.py": """
        get_default_dtype set_default_dtype
        """,
    "python_client/tests/test_tensor_queries.py": """
        _assert _shape_as_tensor
        are_deterministic_algorithms_enabled asarray constant_pad_nd frexp
        get_float32_matmul_precision get_num_interop_threads get_num_threads
        is_inference is_neg is_nonzero is_same_size is_signed set_default_tensor_type
        set_float32_matmul_precision set_flush_denormal set_num_interop_threads
        set_num_threads typename use_deterministic_algorithms
        """,
    "python_client/tests/test_settings.py": """
        get_default_device set_default_device set_warn_always
        """,
    "python_client/tests/test_spectral.py": """
        hamming_window hann_window histogramdd istft stft
        """,
    "python_client/tests/test_indexing.py": "index_put_",
    "python_client/tests/test_signal_windows.py": "resize_as_",
    "python_client/tests/test_keywords.py": "empty_strided matrix_power",
    "python_client/tests/test_special.py": """
        i0_ special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1
        special.erfcx special.i0e special.i1 special.i1e special.log_ndtr
        special.modified_bessel_i1 special.modified_bessel_k0
        special.modified_bessel_k1 special.ndtri special.scaled_modified_bessel_k0
        special.scaled_modified_bessel_k1 special.spherical_bessel_j0
        """,
    "tests/op_cases_fft.py": "is_complex",
    "python_client/tests/test_creation.py": "frombuffer",
    "python_client/tests/test_aten.py": "empty_permuted",
    "python_client/tests/test_random.py": "_sample_dirichlet _standard_gamma binomial",
    "python_client/tests/test_composites.py": """
        allclose equal is_floating_point is_tensor numel
        """,
    "python_client/tests/test_autograd.py": """
        is_inference_mode_enabled detach_ is_grad_enabled
        """,
    "python_client/tests/test_generators.py": """
        get_rng_state initial_seed manual_seed seed set_rng_state
        """,
    "python_client/tests/test_sessions.py": """
        connect current_session detach disconnect keep kept set_default_session
        synchronize
        """,
    "python_client/tests/test_named_tensors.py": """
        lookup publish published unpublish
        """,
    "python_client/tests/test_printing.py": "set_printoptions",
    "python_client/tests/test_numpy_bridge.py": "empty_numpy",
    "python_client/tests/test_element_types.py": """
        can_cast promote_types result_type
        """,
}


def marks():
    """Function name -> its checks, such as {"n", "g"}."""
    found = collections.defaultdict(set)
    for case in CASES:
        found[case.op] |= {"n", "b"}
        if not case.random and case.op not in NOT_IN_TORCH:
            found[case.op].add("t")
        if case.grad:
            found[case.op].add("g")
            if case.second:
                found[case.op].add("2")
    for name in COVERED:
        found[name].add("p")
    for row in holdfast._C.schema():
        found[row["name"]].add("f")
    for names in OWN_TESTS.values():
        for name in names.split():
            found[name].add("o")
    return found


def found_by(name):
    """The function, which its synonyms are too; a method (copy_) has none."""
    value = holdfast
    for part in name.split("."):
        value = getattr(value, part, name)
    return value


def checks():
    """(function's description, its marks in order) of every public function."""
    functions, known = reference.functions(), marks()
    rows = {row["name"] for row in holdfast._C.schema()}
    of_object = collections.defaultdict(set)
    for f in functions:
        name = f["name"]
        # A row that only its namespace shows: nn.functional.gelu, linalg_qr.
        others = {name, name.replace(".", "_")}
        if (short := name.rsplit(".", 1)[-1]) in rows:
            others.add(short)
        for other in others & known.keys():
            of_object[id(found_by(name))] |= known[other]
    for f in functions:
        own = of_object[id(found_by(f["name"]))]
        yield f, "".join(m for m in MARKS if m in own)


def page():
    lines, counts, primitives = [], collections.Counter(), 0
    for f, found in checks():
        counts.update(found)
        primitives += f["kind"] == "primitive"
        doc = f["doc"].split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        lines.append(f"| `{f['name']}` | {f['kind']} | {found} | {doc} |")
    head = HEAD.format(
        count=len(lines),
        primitives=primitives,
        counts=", ".join(f"{counts[m]} {m}" for m in MARKS),
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
