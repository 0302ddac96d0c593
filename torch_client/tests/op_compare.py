# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""One sample of PyTorch's OpInfo on device "holdfast" and on the CPU."""

import torch
from op_call import Call, is_random
from torch.utils._pytree import tree_flatten, tree_map

# rtol, atol. PyTorch compares CUDA with the CPU at 1e-3 in every type
# (test_ops.py, test_compare_cpu), and bfloat16 at its resolution.
TOLERANCES = {
    torch.float32: (1e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
    torch.float64: (1e-5, 1e-6),
    torch.complex64: (1e-3, 1e-3),
    torch.complex128: (1e-5, 1e-6),
}

# Operators that may name any of equal elements: where `dim` is in their arguments
# behind the first.
_RANKS = {"argsort": 0, "sort": 0, "mode": 0, "topk": 1, "kthvalue": 1}


def named_elements(op, sample, result):
    """`result` with the elements that its indices name in the indices' place."""
    if op.name not in _RANKS:
        return result
    values, indices = (None, result) if op.name == "argsort" else result
    place = _RANKS[op.name]
    given = sample.args[place] if len(sample.args) > place else -1
    dim = sample.kwargs.get("dim", given)
    input = sample.input.detach().cpu()
    if input.dim() == 0:
        return result
    if indices.dim() < input.dim():
        indices = indices.unsqueeze(dim)
    named = input.gather(dim, indices.detach().cpu())
    return named if values is None else (values, named)


def on_cpu(value):
    return tree_map(
        lambda x: x.detach().cpu() if isinstance(x, torch.Tensor) else x, value
    )


def same(found, expected, random=False):
    """Raises AssertionError where results differ in type, size or number."""
    ours, theirs = tree_flatten(found)[0], tree_flatten(expected)[0]
    assert len(ours) == len(theirs), f"{len(ours)} results, not {len(theirs)}"
    for one, other in zip(ours, theirs):
        if not isinstance(other, torch.Tensor):
            if isinstance(other, (torch.device, torch.Generator)):
                continue
            assert one == other or other != other, f"{one} is not {other}"
            continue
        assert one.dtype == other.dtype, f"{one.dtype} is not {other.dtype}"
        assert one.shape == other.shape, f"{one.shape} is not {other.shape}"
        if not random:
            rtol, atol = TOLERANCES.get(other.dtype, (None, None))
            torch.testing.assert_close(
                one, other, rtol=rtol, atol=atol, equal_nan=True, check_stride=False
            )


def forward(op, sample):
    """Whether the sample could be compared; the CPU refuses some."""
    try:
        expected = Call(op, sample, "cpu")
        theirs = expected.process(expected())
    except Exception:
        return False
    call = Call(op, sample, "holdfast")
    ours = call.process(call())
    check_device(ours, theirs)
    ours, theirs = (on_cpu(named_elements(op, sample, x)) for x in (ours, theirs))
    try:
        same(ours, theirs, is_random(op, sample))
    except AssertionError:
        if not as_exact(op, sample, ours, theirs):
            raise
    return True


def as_exact(op, sample, ours, theirs):
    """Whether bfloat16 results are near float64's: by the largest element, two units of
    its last place, or twice as far as the CPU's. Both round on the way, and what they
    add may cancel."""

    def widen(x):
        narrow = isinstance(x, torch.Tensor) and x.dtype is torch.bfloat16
        return x.detach().double() if narrow else x

    pairs = list(zip(*(tree_flatten(x)[0] for x in (ours, theirs))))
    if not any(x.dtype is torch.bfloat16 for x, _ in pairs):
        return False
    try:
        exact = Call(op, sample.transform(widen), "cpu")
        wide = tree_flatten(on_cpu(exact.process(exact())))[0]
    except Exception:
        return False
    for (one, other), truth in zip(pairs, wide):
        if one.dtype is not torch.bfloat16:
            same(one, other)
            continue
        if one.shape != truth.shape:
            return False
        if truth.numel() == 0:
            continue
        far, limit = ((x.double() - truth).abs().max() for x in (one, other))
        if not (far <= truth.abs().max() * 2**-7 or far <= 2 * limit):
            return False
    return True


def check_device(found, expected):
    for one in tree_flatten(found)[0]:
        if isinstance(one, torch.Tensor):
            assert one.device.type == "holdfast", f"a result on {one.device}"


def _outputs(call):
    found = call.process(call())
    return [
        x
        for x in tree_flatten(found)[0]
        if isinstance(x, torch.Tensor) and x.requires_grad
    ]


def _random_like(tensor, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)


def _gradients(call, second):
    """Gradients of the sample's leaves; of those, once more if `second`."""
    leaves = call.leaves()
    torch.manual_seed(0)
    outputs = _outputs(call)
    grads = [
        _random_like(x, i).to(call.device).requires_grad_(second)
        for i, x in enumerate(outputs)
    ]
    if not outputs:
        return None
    first = torch.autograd.grad(
        outputs, leaves, grads, create_graph=second, allow_unused=True
    )
    if not second:
        return first
    depends = [x for x in first if x is not None and x.requires_grad]
    if not depends:
        return None
    weights = [_random_like(x, 100 + i).to(call.device) for i, x in enumerate(depends)]
    return torch.autograd.grad(depends, leaves + grads, weights, allow_unused=True)


def gradients(op, sample, second=False):
    """As forward(), of the gradients or of the gradients' gradients."""
    if is_random(op, sample):
        return False
    try:
        theirs = _gradients(Call(op, sample, "cpu"), second)
    except Exception:
        return False
    if theirs is None:
        return False
    ours = _gradients(Call(op, sample, "holdfast"), second)
    assert ours is not None, "no result requires gradients"
    same(on_cpu(_filled(ours, theirs)), on_cpu(_filled(theirs, ours)))
    return True


def _filled(grads, others):
    """None is as good as zeros."""
    return [
        torch.zeros_like(o, device="cpu") if g is None and o is not None else g
        for g, o in zip(grads, others)
    ]


def refuses(op, error):
    """Raises AssertionError unless the device refuses an ErrorInput as the CPU does."""
    sample = error.sample_input
    try:
        Call(op, sample, "cpu")()
    except error.error_type:
        pass
    except Exception:
        return False
    else:
        return False
    try:
        on_cpu(Call(op, sample, "holdfast")())
    except error.error_type:
        return True
    except Exception as other:
        raise AssertionError(
            f"{type(other).__name__} and not {_names(error.error_type)}: {other}"
        ) from other
    raise AssertionError(f"no {_names(error.error_type)}: {error.error_regex}")


def _names(kinds):
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join(k.__name__ for k in kinds)
