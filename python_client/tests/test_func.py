# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""holdfast.func, beside functorch where PyTorch is installed."""

import numpy as np
import pytest


def numbers(nest):
    """Nested results as nested lists of NumPy arrays."""
    if isinstance(nest, dict):
        return [numbers(nest[k]) for k in sorted(nest)]
    if isinstance(nest, (tuple, list)):
        return [numbers(x) for x in nest]
    return np.array(nest.detach().numpy()) if hasattr(nest, "detach") else nest


def assert_same(ours, theirs):
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs)
        for our, their in zip(ours, theirs):
            assert_same(our, their)
    else:
        assert np.shape(ours) == np.shape(theirs)
        np.testing.assert_allclose(ours, theirs, 1e-9, 1e-12)


A = [[0.5, -1.0, 2.0], [0.1, 0.7, -0.3]]
B = [1.0, -2.0, 0.5]


def loss(a, b):
    return ((a @ b) ** 2).sum() + (a[0] * b).sin().sum()


def pair(a, b):
    return {"x": a @ b, "y": (b**2, a.exp())}


PROGRAMS = {
    "grad": lambda f, t, a, b: f.grad(loss)(a, b),
    "grad of both": lambda f, t, a, b: f.grad(loss, argnums=(0, 1))(a, b),
    "grad with aux": lambda f, t, a, b: f.grad(
        lambda x: (loss(x, b), {"k": x * 2}), has_aux=True
    )(a),
    "grad of a dict": lambda f, t, a, b: f.grad(lambda p: loss(p["a"], p["b"]))(
        {"a": a, "b": b}
    ),
    "grad of grad": lambda f, t, a, b: f.grad(lambda x: f.grad(loss)(a, x).sin().sum())(
        b
    ),
    "third derivative": lambda f, t, a, b: f.grad(f.grad(f.grad(lambda x: x.sin())))(
        b[0]
    ),
    "grad_and_value": lambda f, t, a, b: f.grad_and_value(loss)(a, b),
    "vjp": lambda f, t, a, b: f.vjp(pair, a, b)[1]({"x": a[:, 0], "y": (b, a)}),
    "vjp's value": lambda f, t, a, b: f.vjp(pair, a, b)[0],
    "jvp": lambda f, t, a, b: f.jvp(pair, (a, b), (a * 2, b.cos())),
    "jvp of jvp": lambda f, t, a, b: f.jvp(
        lambda x: f.jvp(lambda y: (y**3).sum(), (x,), (b,))[1], (b,), (b.cos(),)
    ),
    "jvp of grad": lambda f, t, a, b: f.jvp(f.grad(lambda x: loss(a, x)), (b,), (b,)),
    "jacrev": lambda f, t, a, b: f.jacrev(lambda x, y: (x @ y).exp(), argnums=1)(a, b),
    "jacrev of both": lambda f, t, a, b: f.jacrev(
        lambda x, y: (x @ y).exp(), argnums=(0, 1)
    )(a, b),
    "jacfwd": lambda f, t, a, b: f.jacfwd(lambda x, y: (x @ y).exp(), argnums=1)(a, b),
    "jacfwd of both": lambda f, t, a, b: f.jacfwd(
        lambda x, y: (x @ y).exp(), argnums=(0, 1)
    )(a, b),
    "hessian": lambda f, t, a, b: f.hessian(loss, argnums=1)(a, b),
    "jacrev of jacfwd": lambda f, t, a, b: f.jacrev(f.jacfwd(lambda x: x**3))(b),
    "vmap": lambda f, t, a, b: f.vmap(lambda x, y: x * y, in_dims=(1, 0))(a, b),
    "vmap with out_dims": lambda f, t, a, b: f.vmap(
        lambda x: (x * 2, x.sum()), out_dims=(1, 0)
    )(a),
    "vmap of nests": lambda f, t, a, b: f.vmap(
        lambda p, y: p["a"] * y, in_dims=({"a": 0}, None)
    )({"a": a}, b),
    "vmap of vmap": lambda f, t, a, b: f.vmap(f.vmap(lambda x: x.sin()))(a),
    "gradients per example": lambda f, t, a, b: f.vmap(
        f.grad(lambda w, x: (w * x).sin().sum()), in_dims=(None, 0)
    )(b, a),
    "grad of vmap": lambda f, t, a, b: f.grad(
        lambda x: f.vmap(lambda row: row.prod())(x).sum()
    )(a),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_functorch(torch, name):
    peer = pytest.importorskip("torch")
    functorch = pytest.importorskip("functorch")
    results = []
    for f, t in ((torch.func, torch), (functorch, peer)):
        a = t.tensor(A, dtype=t.float64)
        b = t.tensor(B, dtype=t.float64)
        results.append(numbers(PROGRAMS[name](f, t, a, b)))
    assert_same(*results)


# ---- histories


def test_results_have_a_history_only_if_somebody_asks(torch):
    f = torch.func
    x = torch.tensor(2.0)
    w = torch.tensor(3.0, requires_grad=True)
    assert not f.grad(lambda x: x**3)(x).requires_grad
    assert not any(y.requires_grad for y in f.grad_and_value(lambda x: x**3)(x))
    assert not any(y.requires_grad for y in f.jvp(torch.sin, (x,), (x,)))
    g = f.grad(lambda x: w * x**3)(x)
    assert torch.autograd.grad(g, w)[0].item() == 12.0
    h = f.grad(lambda w: w**3)(w)
    assert torch.autograd.grad(h, w)[0].item() == 18.0
    assert w.grad is None
    with torch.no_grad():
        g = f.grad(lambda x: w * x**3)(w)
    assert g.item() == 81.0 and not g.requires_grad


def test_a_vjp_can_be_called_often(torch):
    y, pull = torch.func.vjp(lambda x: x**2, torch.tensor([1.0, 3.0]))
    assert not y.requires_grad
    for k in (1.0, 2.0):
        assert pull(torch.full((2,), k))[0].tolist() == [2 * k, 6 * k]
    with pytest.raises(RuntimeError, match="pytree structure"):
        pull((y, y))


def test_linearize(torch):
    calls = []

    def f(x):
        calls.append(x)
        return x**2, {"k": x.sum()}

    value, push = torch.func.linearize(f, torch.tensor([1.0, 3.0]))
    for k in (1.0, 2.0):
        tangent, more = push(torch.full((2,), k))
        assert tangent.tolist() == [2 * k, 6 * k] and more["k"].item() == 2 * k
    assert len(calls) == 1 and value[0].tolist() == [1.0, 9.0]


# ---- what is refused


def test_refused_calls(torch):
    f = torch.func
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="scalar tensor, got tensor with 1 dims"):
        f.grad(lambda x: x)(x)
    with pytest.raises(RuntimeError, match="to return tensor"):
        f.grad(lambda x: 5)(x)
    with pytest.raises(RuntimeError, match="only 1 positional inputs"):
        f.grad(torch.sum, argnums=1)(x)
    with pytest.raises(RuntimeError, match="unique"):
        f.grad(torch.sum, argnums=(0, 0))(x)
    with pytest.raises(RuntimeError, match="(output, aux)"):
        f.grad(torch.sum, has_aux=True)(x)
    with pytest.raises(ValueError, match="to be Tensors, got float"):
        f.grad(lambda x: x)(1.0)
    with pytest.raises(RuntimeError, match="primals"):
        f.jvp(torch.sin, x, (x,))
    with pytest.raises(RuntimeError, match="primals' shapes"):
        f.jvp(torch.sin, (x,), (torch.ones(2),))
    with pytest.raises(NotImplementedError, match="functionalize"):
        f.functionalize


def test_refused_batches(torch):
    vmap = torch.vmap
    x = torch.ones(3, 2)
    with pytest.raises(ValueError, match=r"same size in the mapped .* sizes \[3, 2\]"):
        vmap(torch.add)(x, x[:2])
    with pytest.raises(ValueError, match="at least one input"):
        vmap(torch.sin, in_dims=None)(x)
    with pytest.raises(ValueError, match="in_dim=5"):
        vmap(torch.sin, in_dims=5)(x)
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda x: 5)(x)
    with pytest.raises(ValueError, match="non-Tensor"):
        vmap(lambda x, y: x)(x, 5)
    with pytest.raises(ValueError, match="no examples"):
        vmap(torch.sin)(x[:0])
    with pytest.raises(ValueError, match="fit the structure"):
        vmap(torch.sin, in_dims=(0, 0))(x)


def test_random_numbers_in_batches(torch):
    x = torch.zeros(3, 4)

    def noise(x):
        return x + torch.rand(4)

    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(noise)(x)
    same = torch.vmap(noise, randomness="same")(x)
    assert (same == same[0]).all()
    different = torch.vmap(noise, randomness="different")(x)
    assert not (different[1] == different[0]).any()
    with pytest.raises(RuntimeError, match="Only allowed values"):
        torch.vmap(noise, randomness="some")(x)


# ---- modules


def test_functional_call(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
    x = torch.ones(3, 2)
    before = {n: p for n, p in model.named_parameters()}
    params = {n: torch.full_like(p, 2.0).detach() for n, p in before.items()}
    y = torch.func.functional_call(model.eval(), params, (x,))
    buffers = {"1.running_mean": torch.ones(1)}
    z = torch.func.functional_call(model, (params, buffers), x)
    assert y.flatten().tolist() == pytest.approx([14.0] * 3, rel=1e-4)
    assert z.flatten().tolist() == pytest.approx([12.0] * 3, rel=1e-4)
    assert all(p is before[n] for n, p in model.named_parameters())

    def loss(params):
        return torch.func.functional_call(model, params, x).sum()

    gradients = torch.func.grad(loss)(params)
    assert gradients["1.bias"].tolist() == [3.0]
    with pytest.raises(AttributeError, match="'nothing'"):
        torch.func.functional_call(model, {"nothing": x}, x)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        torch.func.functional_call(model, (params, params), x)
    with pytest.raises(RuntimeError, match="missing key"):
        torch.func.functional_call(model, params, x, strict=True)
    with pytest.raises(TypeError, match="must be a Tensor"):
        torch.func.functional_call(model, {"1.bias": 5}, x)


def test_tied_parameters_change_together(torch):
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
    )
    model[1].weight = model[0].weight
    x = torch.ones(1, 2)
    call = torch.func.functional_call
    two = torch.eye(2) * 2
    assert call(model, {"0.weight": two}, x).tolist() == [[4.0, 4.0]]
    assert call is torch.nn.utils.stateless.functional_call
    one = torch.eye(2)
    values = {"0.weight": two, "1.weight": one}
    with pytest.raises(ValueError, match="tied"):
        call(model, values, x)
    assert call(model, values, x, tie_weights=False).tolist() == [[2.0, 2.0]]


def test_an_ensemble(torch):
    models = [torch.nn.Linear(2, 1) for _ in range(3)]
    params, buffers = torch.func.stack_module_state(models)
    assert params["weight"].shape == (3, 1, 2) and params["weight"].is_leaf
    assert params["weight"].requires_grad and buffers == {}
    x = torch.ones(4, 2)
    got = torch.vmap(lambda p, b: torch.func.functional_call(models[0], (p, b), x))(
        params, buffers
    )
    for i, model in enumerate(models):
        assert (got[i] == model(x)).all()
    got.sum().backward()
    assert params["bias"].grad.tolist() == [[4.0]] * 3
