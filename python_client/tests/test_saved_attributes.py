# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What grad_fn shows of what an op saves, by PyTorch's names."""

import gc

import pytest

from holdfast import _stats


def saved_names(node):
    return {name for name in dir(node) if name.startswith("_saved_")}


def tensors_of(session):
    for told in _stats.parse(session._stats())["sessions"]:
        if told["id"] == session.id:
            return told["tensors"]
    raise AssertionError("no such session")


def test_an_input_is_the_programs_own_object(torch):
    x = torch.randn(5, requires_grad=True)
    y = x.pow(2)
    assert y.grad_fn._saved_self is x
    assert y.grad_fn._saved_exponent == 2
    weight = torch.nn.Parameter(torch.ones(3))
    z = weight * torch.arange(3.0)
    assert z.grad_fn._saved_other.tolist() == [0, 1, 2]
    assert (weight * weight).grad_fn._saved_self is weight


def test_a_result_is_an_alias(torch):
    x = torch.randn(5, requires_grad=True)
    y = x.exp()
    saved = y.grad_fn._saved_result
    assert saved is not y and saved.equal(y)
    z = x.sin()
    middle = (z * 3).exp() * z
    assert middle.grad_fn._saved_other.equal(z)
    assert middle.grad_fn._saved_self.equal((z * 3).exp())


def test_the_graph_is_kept_by_the_node(torch):
    x = torch.randn(5, requires_grad=True)
    node = (x * 2).exp().grad_fn
    gc.collect()
    assert node._saved_result.equal((x * 2).exp())
    inner = node.next_functions[0][0]
    assert inner.next_functions[0][0].variable is x
    del node
    assert inner.next_functions[0][0].variable is x


def test_leaves_are_found_by_their_objects(torch):
    """As programs that draw a graph do: the name of a parameter goes by id()."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
    names = {id(p): name for name, p in model.named_parameters()}
    seen, ahead = set(), [model(torch.ones(2, 3)).sum().grad_fn]
    while ahead:
        node = ahead.pop()
        if hasattr(node, "variable"):
            seen.add(names[id(node.variable)])
        ahead += [n for n, _ in node.next_functions if n is not None]
    assert seen == {"0.weight", "0.bias"}


def test_names(torch):
    x = torch.randn(2, 3, 5, 5, requires_grad=True)
    conv = torch.nn.Conv2d(3, 4, 3, padding=1)(x).grad_fn
    assert conv._saved_input is x and conv._saved_weight.shape == (4, 3, 3, 3)
    assert conv._saved_padding == (1, 1) and conv._saved_groups == 1
    layer = torch.nn.Linear(3, 2)
    rows = torch.ones(4, 3)
    node = layer(rows).grad_fn
    assert type(node).__name__ == "AddmmBackward0"
    assert node._saved_mat1.equal(rows) and node._saved_mat2.equal(layer.weight.t())
    product = (layer.weight @ torch.ones(3, 6)).grad_fn
    assert product._saved_mat2.shape == (3, 6)
    assert x.softmax(1).grad_fn._saved_dim == 1
    assert saved_names(x.relu().grad_fn) == {"_saved_result"}
    with pytest.raises(AttributeError, match="no attribute '_saved_x': it saves _sav"):
        x.exp().grad_fn._saved_x
    with pytest.raises(AttributeError, match="no attribute 'variable'"):
        x.exp().grad_fn.variable
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        x.exp().grad_fn.colour


def test_what_is_freed_or_changed_is_told(torch):
    x = torch.randn(5, requires_grad=True)
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="access saved tensors after they have"):
        y.grad_fn._saved_result
    assert saved_names(y.grad_fn) == set()
    z = x.exp()
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.grad_fn.next_functions[0][0]._saved_result
    assert torch.ones(2).sum().item() == 2


def test_of_functions_and_hooks(torch):
    x = torch.randn(5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.exp()
    with pytest.raises(NotImplementedError, match="saved_tensors_hooks"):
        y.grad_fn._saved_result
    x.grad = None
    (x**3).sum().backward(create_graph=True)
    assert saved_names(x.grad.grad_fn) == set()  # the daemon made that graph


def test_reading_keeps_nothing(torch):
    x = torch.randn(1000, requires_grad=True)
    y = x.exp()
    before = tensors_of(torch.current_session())
    for _ in range(100):
        y.grad_fn._saved_result
    gc.collect()
    assert tensors_of(torch.current_session()) <= before + 2
