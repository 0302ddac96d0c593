# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor.apply_, map_ and map2_, each against PyTorch."""

import pytest
import torch_peer

DTYPES = (
    "bool uint8 int8 int32 int64 float16 bfloat16 float32 float64 complex64".split()
)


def in_both(torch, call):
    """What `call` gives, or its error's kind, in Holdfast and in PyTorch."""
    results = []
    for library in (torch, torch_peer.torch):
        try:
            results.append(call(library).tolist())
        except Exception as error:
            results.append(
                next(k for k in type(error).__mro__ if k.__module__ == "builtins")
            )
    return results


@pytest.mark.parametrize("dtype", DTYPES)
def test_values(torch, dtype):
    seen = []

    def make(t, *shape):
        return t.ones(*shape).cumsum(0).to(getattr(t, dtype))

    def look(value):
        seen.append(type(value))
        return value + 2

    for call in (
        lambda t: make(t, 2, 3).apply_(look),
        lambda t: make(t, 2, 3).t().apply_(lambda v: v * 2),
        lambda t: make(t, 4).reshape(2, 2)[:, 1].apply_(lambda v: v * 2),
        lambda t: make(t, 2, 3).map_(make(t, 3), lambda a, b: a + b),
        lambda t: make(t, 2, 3).map2_(
            make(t, 3), make(t, 2, 1), lambda a, b, c: a * b + c
        ),
        lambda t: make(t, 0, 3).apply_(look),
        lambda t: make(t, 2).apply_(lambda v: t.tensor(3)),
    ):
        ours, theirs = in_both(torch, call)
        assert ours == theirs
    assert len(seen) == 12 and len(set(seen)) == 1  # of one type in both
    # PyTorch refuses a tensor without dimensions.
    assert torch.ones(()).apply_(lambda v: v * 3).item() == 3


def test_bad_arguments(torch):
    for call in (
        lambda t: t.ones(2).apply_(3),
        lambda t: t.ones(2).apply_(lambda v: "a"),
        lambda t: t.ones(2).apply_(lambda v: None),
        lambda t: t.ones(2).apply_(lambda v: 1 / 0),
        lambda t: t.ones(2).long().apply_(lambda v: 2.7),
        lambda t: t.ones(2).to(t.uint8).apply_(lambda v: 300),
        lambda t: t.ones(2).to(t.uint8).apply_(lambda v: -1),
        lambda t: t.ones(2).to(t.int8).apply_(lambda v: -200),
        lambda t: t.ones(2, requires_grad=True).apply_(lambda v: v),
        lambda t: t.ones(2).map_(2, lambda a, b: a),
        lambda t: t.ones(2).map_(t.ones(2).double(), lambda a, b: a),
        lambda t: t.ones(2, 2).map_(t.ones(3, 2, 2), lambda a, b: a),
        lambda t: t.ones(2).map_(t.ones(3), lambda a, b: a),
        lambda t: t.ones(2).map_(t.ones(2, requires_grad=True), lambda a, b: a),
    ):
        ours, theirs = in_both(torch, call)
        assert ours == theirs


def test_a_function_that_raises_leaves_the_tensor(torch):
    x = torch.arange(4.0)
    with pytest.raises(ZeroDivisionError):
        x.apply_(lambda v: 1 / (2 - v))
    assert x.tolist() == [0, 1, 2, 3]


def test_a_saved_tensor_that_was_changed_is_noticed(torch):
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2)
    z = (x * y).sum()
    assert y.apply_(lambda v: v + 1) is y
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
        x.grad.tolist()
