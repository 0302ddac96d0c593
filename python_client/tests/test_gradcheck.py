# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""autograd.gradcheck and gradgradcheck: they pass what is right, and only that."""

import pytest


@pytest.fixture
def x(torch):
    return torch.tensor(
        [[0.5, -1.0], [2.0, 0.25]], dtype=torch.float64
    ).requires_grad_()


def function(torch, backward, forward=None):
    class Custom(torch.autograd.Function):
        pass

    Custom.forward = staticmethod(forward or (lambda ctx, x: x * 2))
    Custom.backward = staticmethod(backward)
    return Custom.apply


def test_right_gradients_pass(torch, x):
    y = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64).t()
    assert not y.is_contiguous()
    y.requires_grad_()
    before = y.tolist()
    for options in ({}, {"fast_mode": True}, {"check_forward_ad": True}):
        assert torch.autograd.gradcheck(
            lambda a, b, n: (a * b.exp() / n, a.sum(), a > 0), (x, y, 3), **options
        )
    assert torch.autograd.gradgradcheck(lambda a, b: a * b.exp(), (x, y))
    assert torch.autograd.gradgradcheck(
        lambda a: a.sin(),
        x,
        gen_non_contig_grad_outputs=True,
        fast_mode=True,
        check_fwd_over_rev=True,
    )
    assert y.tolist() == before and x.grad is None


def test_complex_gradients(torch):
    z = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128, requires_grad=True)
    functions = [
        lambda z: z * z.conj() * z,
        lambda z: z.abs(),
        lambda z: torch.view_as_real(z)[..., 1] * z,
    ]
    for f in functions:
        assert torch.autograd.gradcheck(f, z)
        assert torch.autograd.gradcheck(f, z, fast_mode=True)
        assert torch.autograd.gradgradcheck(f, z)


@pytest.mark.parametrize("fast", [False, True])
def test_a_wrong_gradient_is_found(torch, x, fast):
    f = function(torch, lambda ctx, g: g * 3)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with") as e:
        torch.autograd.gradcheck(f, x, fast_mode=fast)
    assert type(e.value) is torch.autograd.gradcheck.__globals__["GradcheckError"]
    assert not torch.autograd.gradcheck(f, x, raise_exception=False, fast_mode=fast)
    # One wrong element of many.
    mask = torch.tensor([[0.0, 0.0], [1e-3, 0.0]], dtype=torch.float64)
    f = function(torch, lambda ctx, g: g * (2 + 5 * mask))
    assert not torch.autograd.gradcheck(f, x, raise_exception=False)
    assert torch.autograd.gradcheck(f, x, atol=0.01)


def test_a_wrong_second_gradient_is_found(torch, x):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * (x * x.detach())  # right, and constant in half of it

    assert torch.autograd.gradcheck(Cube.apply, x)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradgradcheck(Cube.apply, x)


def test_other_faults_are_named(torch, x):
    check = torch.autograd.gradcheck

    calls = []

    def drifting(ctx, g):
        calls.append(g)
        return g * 2 + 1e-9 * len(calls)

    f = function(torch, drifting)
    with pytest.raises(RuntimeError, match="not reentrant"):
        check(f, x)
    offset = function(torch, lambda ctx, g: g * 2 + 1e-7)
    with pytest.raises(RuntimeError, match="not multiplied by grad_output"):
        check(offset, x)

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def refuses(ctx, g, h):
        if (g is None) != (h is None) and not (h if g is None else g).any():
            raise RuntimeError("cannot do without a gradient")
        return (0 if g is None else g * 2) + (0 if h is None else h * 3)

    f = function(torch, refuses, forward)
    with pytest.raises(RuntimeError, match="handle undefined output grads. Got cannot"):
        check(f, x)
    assert check(f, x, check_undefined_grad=False)


def test_refused_inputs(torch, x):
    check = torch.autograd.gradcheck
    with pytest.raises(ValueError, match="at least one input tensor to require"):
        check(lambda a: a, x.detach())
    with pytest.raises(RuntimeError, match="dimension with stride 0"):
        check(
            lambda a: a * 1,
            torch.ones(1, dtype=torch.float64).expand(3).requires_grad_(),
        )
    with pytest.raises(ValueError, match="check_forward_ad or check_backward_ad"):
        check(lambda a: a, x, check_backward_ad=False)
    with pytest.raises(NotImplementedError, match="sparse"):
        check(lambda a: a, x, check_sparse_nnz=True)
    with pytest.raises(ValueError, match="Got str"):
        check(lambda a: "text", x)
    with pytest.warns(UserWarning, match="double precision"):
        check(lambda a: a * 1, torch.ones(2, requires_grad=True), eps=1e-2, atol=1e-2)


def test_outputs_without_a_gradient(torch, x):
    assert torch.autograd.gradcheck(lambda a: a.detach() * 0 + 1, x)
    with pytest.raises(RuntimeError, match="expected to be zero"):
        torch.autograd.gradcheck(lambda a: a.detach() * 2, x)


def test_an_error_leaves_the_inputs_as_they_were(torch, x):
    before, calls = x.tolist(), []

    def fails_later(a):
        calls.append(1)
        if len(calls) == 4:
            raise KeyError("later")
        return a * 2

    with pytest.raises(KeyError):
        torch.autograd.gradcheck(fails_later, x)
    assert x.tolist() == before
