# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.accelerator, torch.compiler, torch.foreach and testing.make_tensor."""

import math

import numpy as np
import pytest

from torch_peer import torch as peer


def test_no_accelerator(torch):
    accelerator = torch.accelerator
    if torch.cuda.is_available():
        pytest.skip("the daemon has one")
    assert not accelerator.is_available() and accelerator.device_count() == 0
    assert accelerator.current_accelerator() is None
    for name in ("allocated", "reserved"):
        assert getattr(accelerator, f"memory_{name}")() == 0
        assert getattr(accelerator, f"max_memory_{name}")() == 0
    assert accelerator.memory_stats() == {}
    accelerator.empty_cache()
    accelerator.synchronize()
    with accelerator.device_index(None):
        pass
    for ask in (accelerator.current_device_index, accelerator.get_memory_info):
        with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
            ask()


def test_an_accelerator_has_figures(gpu_session):
    import holdfast

    holdfast.set_default_session(gpu_session)
    accelerator = holdfast.accelerator
    assert str(accelerator.current_accelerator()) == "cuda"
    assert accelerator.device_count() == 2
    assert accelerator.current_device_index() == 0
    with accelerator.device_index(1):
        assert accelerator.current_device_index() == 1
    assert accelerator.current_device_index() == 0
    before = accelerator.memory_allocated()
    kept = holdfast.ones(1 << 20, device="cuda")
    accelerator.synchronize()
    assert accelerator.memory_allocated() - before >= 4 << 20
    assert accelerator.max_memory_allocated() >= accelerator.memory_allocated()
    assert accelerator.memory_stats()["allocated_bytes.all.current"] > 0
    free, total = accelerator.get_memory_info()
    assert 0 < free <= total
    kinds = accelerator.get_device_capability()["supported_dtypes"]
    assert {holdfast.float32, holdfast.bfloat16} <= kinds
    del kept
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats()


def test_marks_for_a_compiler_change_nothing(torch):
    compiler = torch.compiler

    @compiler.disable
    @compiler.set_stance("force_eager")
    def double(x):
        return x * 2

    assert double(torch.ones(1)).item() == 2
    assert compiler.disable(reason="of numbers")(double) is double
    assert compiler.nested_compile_region(double) is double
    compiler.set_stance("default")
    with compiler.set_stance("eager_on_recompile"):
        compiler.cudagraph_mark_step_begin()
    with pytest.raises(RuntimeError, match="stance 'fast'"):
        compiler.set_stance("fast")
    assert not (compiler.is_compiling() or compiler.is_exporting())
    assert compiler.list_backends() == []
    assert compiler.wrap_numpy(np.cumsum)(torch.ones(3)).tolist() == [1, 2, 3]


LISTS = [
    ("add", (2.0,), {}),
    ("add", ("tensors",), {"alpha": 3}),
    ("sub", ([1.0, 2.0],), {}),
    ("mul", ("tensors",), {}),
    ("div", ([2.0, 4.0],), {}),
    ("maximum", ("tensors",), {}),
    ("addcmul", ("tensors", "tensors"), {"value": 0.5}),
    ("addcdiv", ("tensors", "tensors", [0.5, 2.0]), {}),
    ("sqrt", (), {}),
    ("exp", (), {}),
    ("neg", (), {}),
    ("lgamma", (), {}),
]


@pytest.mark.parametrize("name, arguments, options", LISTS)
def test_an_op_for_each_of_a_list(torch, name, arguments, options):
    """As PyTorch 1.13's _foreach functions, out of place and in place."""
    arrays = [np.linspace(0.5, 2, 6).reshape(2, 3), np.array([1.5, 2.5])]
    results = []
    for library in (torch, peer):
        tensors = [library.tensor(array) for array in arrays]
        given = [tensors if a == "tensors" else a for a in arguments]
        found = getattr(library, f"_foreach_{name}")(tensors, *given, **options)
        mine = [tensor.clone() for tensor in tensors]
        assert getattr(library, f"_foreach_{name}_")(mine, *given, **options) is None
        results.append([t.numpy() for t in (*found, *mine)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_lists_of_other_functions(torch):
    a, b = torch.tensor([3.0, 4.0]), torch.ones(2, 2)
    assert [n.item() for n in torch._foreach_norm([a, b])] == [5, 2]
    assert [n.item() for n in torch.foreach.norm([a, b], 1)] == [7, 4]
    torch._foreach_copy_([a], [torch.zeros(2)])
    torch._foreach_lerp_([b], [torch.zeros(2, 2)], 0.5)
    torch._foreach_clamp_max_([b], 0.25)
    assert a.tolist() == [0, 0] and b.tolist() == [[0.25] * 2] * 2
    torch._foreach_zero_([b])
    assert b.sum().item() == 0
    with pytest.raises(RuntimeError, match="same number of tensors, got 1 and 2"):
        torch._foreach_add([a], [a, a])
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        torch._foreach_nothing


@pytest.mark.parametrize(
    "name",
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128".split(),
)
def test_make_tensor_draws_in_its_bounds(torch, name):
    """PyTorch's table: two truths, [0, 10), [-9, 10) or [-9, 9)."""
    make = torch.testing.make_tensor
    dtype = getattr(torch, name)
    x = make((50, 40), dtype=dtype, device="cpu")
    assert x.dtype is dtype and x.shape == (50, 40) and x.is_contiguous()
    low = 0 if name in ("bool", "uint8") else -9
    high = {"bool": 2, **dict.fromkeys(["float16", "bfloat16"], 9.01)}.get(name)
    if high is None:
        high = 10 if "int" in name else 9
    numbers = torch.view_as_real(x) if dtype.is_complex else x
    numbers = numbers.double()
    assert low <= numbers.min().item() and numbers.max().item() < high
    assert numbers.max().item() - numbers.min().item() > 0.9 * (high - 1 - low)


def test_make_tensor_as_it_is_asked(torch):
    make = torch.testing.make_tensor
    x = make(3, 4, dtype=torch.float32, device="cpu", low=2, high=3)
    assert 2 <= x.min().item() and x.max().item() < 3
    x = make((3, 4), dtype=torch.int64, device="cpu", noncontiguous=True)
    assert x.shape == (3, 4) and not x.is_contiguous()
    x = make((100,), dtype=torch.int8, device="cpu", low=-1, high=2, exclude_zero=True)
    assert set(x.tolist()) <= {-1, 1}
    assert make((2,), dtype=torch.float64, device="cpu", requires_grad=True).is_leaf
    wide = make((100,), dtype=torch.float32, device="cpu", low=-math.inf, high=math.inf)
    assert wide.isfinite().all().item() and wide.abs().max().item() > 1e37
    for options, message in (
        ({"dtype": torch.int64, "requires_grad": True}, "not supported for boolean"),
        ({"dtype": torch.float32, "low": 2, "high": 1}, "must be less than `high`"),
        ({"dtype": torch.int64, "low": 1, "high": 1}, "must be less than `high`"),
        ({"dtype": torch.float32, "low": math.nan}, "cannot be NaN"),
        ({"dtype": torch.uint8, "low": 300, "high": 400}, "only supports"),
        (
            {
                "dtype": torch.float32,
                "noncontiguous": True,
                "memory_format": torch.preserve_format,
            },
            "mutually exclusive",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make((2,), device="cpu", **options)


def test_autocast_and_device_modules(torch):
    assert torch.amp.is_autocast_available("cpu")
    assert torch.amp.is_autocast_available("cuda")
    assert not torch.amp.is_autocast_available("meta")
    assert torch.get_device_module("cpu") is torch.cpu
    assert torch.get_device_module(torch.device("cuda")) is torch.cuda
    assert torch.get_device(torch.ones(1)) == -1
    with pytest.raises(RuntimeError, match="'meta' does not have a corresponding"):
        torch.get_device_module("meta")


def test_generators_have_places(torch):
    generator = torch.Generator().manual_seed(3)
    torch.rand(4, generator=generator)
    other = generator.clone_state()
    assert other.get_offset() == generator.get_offset() > 0
    expected = torch.rand(3, generator=generator).tolist()
    assert torch.rand(3, generator=other).tolist() == expected
    other.manual_seed(3).set_offset(generator.get_offset())
    after = torch.rand(2, generator=generator).tolist()
    assert torch.rand(2, generator=other).tolist() == after
