# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""autograd.functional, forward_ad and batched gradients, beside PyTorch."""

import numpy as np
import pytest


def numbers(nest):
    """Nested tuples of tensors as nested lists of NumPy arrays."""
    if isinstance(nest, (tuple, list)):
        return [numbers(x) for x in nest]
    return np.array(nest.detach().numpy())


def assert_same(ours, theirs):
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs)
        for our, their in zip(ours, theirs):
            assert_same(our, their)
        return
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, 1e-9, 1e-12)


A = np.array([[0.5, -1.0, 2.0], [0.1, 0.7, -0.3]])
B = np.array([1.0, -2.0, 0.5])

# name -> function of (the package, tensors)
VECTOR = {
    "one": (lambda t, a: (a * a).sum(0).sin(), [A]),
    "two": (lambda t, a, b: a @ b, [A, B]),
    "tuple": (lambda t, a, b: (a.exp() * b, b**3), [A, B]),
    "matrix": (lambda t, a: a.t() @ a, [A]),
    "independent": (lambda t, a, b: a * 2, [A, B]),
}
SCALAR = {
    "one": (lambda t, a: (a**3).sum() * a[0, 0], [A]),
    "two": (lambda t, a, b: ((a @ b) ** 2).sum() + (b**3).prod(), [A, B]),
    "linear": (lambda t, a: a.sum(), [A]),
}


def both(torch, f, arrays):
    peer = pytest.importorskip("torch")
    for package, make in ((torch, torch.tensor), (peer, peer.tensor)):
        inputs = tuple(make(a.tolist(), dtype=package.float64) for a in arrays)
        yield package, (lambda *x, p=package: f(p, *x)), (
            inputs if len(inputs) > 1 else inputs[0]
        )


def vectors(package, like):
    if isinstance(like, tuple):
        return tuple(vectors(package, x) for x in like)
    return package.linspace(-1, 1, like.numel(), dtype=package.float64).reshape(
        like.shape
    )


@pytest.mark.parametrize("name", VECTOR)
@pytest.mark.parametrize("what", ["jacobian", "vjp", "jvp"])
def test_functions_with_vector_results(torch, name, what):
    f, arrays = VECTOR[name]
    results = []
    for package, g, inputs in both(torch, f, arrays):
        function = getattr(package.autograd.functional, what)
        if what == "jacobian":
            results.append(numbers(function(g, inputs)))
            continue
        like = inputs if what == "jvp" else g(*inputs if len(arrays) > 1 else (inputs,))
        results.append(numbers(function(g, inputs, vectors(package, like))))
    assert_same(*results)


@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.parametrize("what", ["hessian", "hvp", "vhp"])
def test_functions_with_scalar_results(torch, name, what):
    f, arrays = SCALAR[name]
    results = []
    for package, g, inputs in both(torch, f, arrays):
        function = getattr(package.autograd.functional, what)
        more = () if what == "hessian" else (vectors(package, inputs),)
        results.append(numbers(function(g, inputs, *more)))
    assert_same(*results)


def test_create_graph(torch):
    F = torch.autograd.functional
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert not F.jacobian(torch.exp, x).requires_grad
    for result in (
        F.jacobian(lambda a: a**3, x, create_graph=True).sum(),
        F.vjp(lambda a: a**3, x, torch.ones_like(x), create_graph=True)[1].sum(),
        F.jvp(lambda a: a**3, x, torch.ones_like(x), create_graph=True)[1].sum(),
    ):
        (second,) = torch.autograd.grad(result, x)
        assert second.tolist() == pytest.approx([6.0, 12.0])
    h = F.hvp(lambda a: (a**3).sum(), x, torch.ones_like(x), create_graph=True)[1]
    (third,) = torch.autograd.grad(h.sum(), x)
    assert third.tolist() == pytest.approx([6.0, 6.0])
    assert x.grad is None


def test_refused_arguments(torch):
    F = torch.autograd.functional
    x = torch.ones(2, dtype=torch.float64)
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple"):
        F.jacobian(lambda a: a, 5)
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple"):
        F.jacobian(lambda a: 5, x)
    with pytest.raises(RuntimeError, match="contain a single element"):
        F.hessian(lambda a: a, x)
    with pytest.raises(RuntimeError, match="v can only be None"):
        F.vjp(lambda a: a, x)
    with pytest.raises(RuntimeError, match="v has invalid size"):
        F.jvp(lambda a: a, x, torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="does not require gradients"):
        F.jacobian(lambda a: a.detach(), x, strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        F.jacobian(lambda a, b: a * 1, (x, x), strict=True)


# ---- forward_ad


def test_tangents_agree_with_pytorch(torch):
    peer = pytest.importorskip("torch")
    results = []
    for package in (torch, peer):
        ad = package.autograd.forward_ad
        x = package.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=package.float64)
        t = package.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=package.float64)
        with ad.dual_level():
            dual = ad.make_dual(x, t)
            other = ad.make_dual(t, x)
            y = (dual.sin() @ other).exp()
            got = [ad.unpack_dual(y).primal, ad.unpack_dual(y).tangent]
            got += list(ad.unpack_dual(dual.t()))
            assert ad.unpack_dual(x * 2).tangent is None
        assert ad.unpack_dual(y).tangent is None
        results.append(numbers(got))
    assert_same(*results)


def test_a_tangent_is_differentiable(torch):
    ad = torch.autograd.forward_ad
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    with ad.dual_level():
        y = ad.make_dual(x, torch.ones_like(x).detach()) ** 3
        tangent = ad.unpack_dual(y).tangent
    (second,) = torch.autograd.grad(tangent, x)
    assert (tangent.item(), second.item()) == (12.0, 12.0)


def test_dual_levels(torch):
    ad = torch.autograd.forward_ad
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        ad.make_dual(x, x)
    with ad.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode"):
            ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="different size"):
            ad.make_dual(x, torch.ones(3))
        with pytest.raises(ValueError, match="floating point"):
            ad.make_dual(torch.ones(2, dtype=torch.int64), x)
    with pytest.raises(RuntimeError, match="exit a forward AD level"):
        ad.exit_dual_level()

    @ad.dual_level()
    def tangent():
        return ad.unpack_dual(ad.make_dual(x, x * 3) * 2).tangent

    assert tangent().tolist() == [6.0, 6.0]


# ---- grad(is_grads_batched=True)


def test_batched_gradients(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    (g,) = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)
    assert g.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    with pytest.raises(RuntimeError, match="second time|backward"):
        torch.autograd.grad(y, x, torch.ones(2))
    z = torch.ones(1, requires_grad=True)
    y = x * x
    got = torch.autograd.grad(
        y, (x, z), torch.eye(2), is_grads_batched=True, allow_unused=True
    )
    assert got[1] is None
    with pytest.raises(RuntimeError, match="same batch dimension"):
        torch.autograd.grad(y, x, torch.tensor(1.0), is_grads_batched=True)
