# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""autograd.Function and Tensor.register_hook: Python inside backward."""

import gc
import weakref

import pytest


@pytest.fixture
def exp(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            (y,) = ctx.saved_tensors
            return gradient * y

    return Exp


def test_a_function_and_its_derivatives(torch, exp):
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    y = exp.apply(x)
    assert type(y.grad_fn).__name__ == "ExpBackward"
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    assert third.tolist() == pytest.approx([1.0, 2.718281828459045])


def test_several_inputs_and_outputs(torch):
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, n):
            ctx.n = n
            ctx.save_for_backward(a, b)
            return a * b, a + b

        @staticmethod
        def backward(ctx, product, total):
            a, b = ctx.saved_tensors
            seen.append((product.tolist(), total.tolist(), ctx.needs_input_grad, ctx.n))
            return product * b + total, None, None

    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0])
    p, _ = Two.apply(a, b, 7)
    p.sum().backward()
    assert seen == [([1.0, 1.0], [0.0, 0.0], (True, False, False), 7)]
    assert a.grad.tolist() == [3.0, 4.0]


def test_setup_context_and_unmaterialized_gradients(torch):
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2, x * 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, first, second):
            assert second is None
            return first * 2

    x = torch.tensor([1.0], requires_grad=True)
    Split.apply(x)[0].backward()
    assert x.grad.tolist() == [2.0]


def test_written_and_constant_outputs(torch):
    class Increment(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            sign = x > 0
            ctx.mark_non_differentiable(sign)
            return x, sign

        @staticmethod
        def backward(ctx, gradient, _):
            return gradient * 5

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * 1
    view = h[1:]
    k, sign = Increment.apply(h)
    assert k is h and h.tolist() == [2.0, 3.0] and not sign.requires_grad
    (h * h).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [20.0, 30.0]
    x.grad = None
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 5.0]


def test_what_backward_raises_reaches_the_caller(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("boom")

    x = torch.tensor([1.0], requires_grad=True)
    with pytest.raises(ValueError, match="boom"):
        Bad.apply(x).backward()
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize(
    "returned, message",
    [
        (lambda g: (g, g), "incorrect number of gradients"),
        (lambda g: torch_zeros(g, 3), "invalid gradient at index 0"),
        (lambda g: "text", "expected a Tensor or None"),
    ],
)
def test_wrong_gradients_are_refused(torch, returned, message):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return returned(gradient)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=message):
        Wrong.apply(x).sum().backward()


def torch_zeros(like, size):
    return like.new_zeros(size)


def test_saved_tensors_are_watched(torch, exp):
    x = torch.tensor([1.0], requires_grad=True)
    y = exp.apply(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_once_differentiable(torch):
    from holdfast.autograd.function import once_differentiable

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, gradient):
            return gradient * 2 * ctx.saved_tensors[0]

    x = torch.tensor([3.0], requires_grad=True)
    (first,) = torch.autograd.grad(Square.apply(x), x, create_graph=True)
    assert first.tolist() == [6.0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.grad(first, x)


# ---- hooks


def test_hooks_see_and_replace_gradients_in_order(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    h.register_hook(lambda g: seen.append(g.tolist()))
    h.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    (h * h).sum().backward()
    assert seen == [[6.0, 12.0]]
    assert x.grad.tolist() == [181.0, 361.0]


def test_a_hook_sees_the_sum_of_all_paths(torch):
    seen = []
    x = torch.tensor([2.0], requires_grad=True)
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * x + x * 3 + x).backward()
    assert seen == [[8.0]]


def test_removed_hooks_are_not_called(torch):
    x = torch.tensor([2.0], requires_grad=True)
    with x.register_hook(lambda g: g * 100):
        (x * 1).backward()
    assert x.grad.tolist() == [100.0]
    x.grad = None
    h = x * 1
    handle = h.register_hook(lambda g: g * 100)
    y = h * 1
    del h
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_backward_inside_a_hook(torch):
    x = torch.tensor([2.0], requires_grad=True)

    def hook(gradient):
        with torch.enable_grad():
            z = torch.tensor([3.0], requires_grad=True)
            z.register_hook(lambda g: g * 2)
            (z * z * z).backward()
        return gradient * z.grad

    y = x * x
    y.register_hook(hook)
    y.backward()
    assert x.grad.tolist() == [216.0]


def test_a_backward_inside_a_hook_adds_to_the_same_leaf(torch):
    x = torch.tensor([2.0], requires_grad=True)

    def hook(gradient):
        with torch.enable_grad():
            (x * x).backward()
        assert x.grad.tolist() == [4.0]

    y = x * 3
    y.register_hook(hook)
    y.backward()
    assert x.grad.tolist() == [7.0]


def test_a_hook_that_runs_the_same_graph_again(torch):
    x = torch.tensor([2.0], requires_grad=True)
    h = x * x
    inner = []

    def hook(gradient):
        inner.extend(torch.autograd.grad(h, x, retain_graph=True))

    y = h * 3
    y.register_hook(hook)
    y.backward()
    assert inner[0].tolist() == [4.0]
    assert x.grad.tolist() == [12.0]


def test_hooks_need_a_gradient_and_keep_its_shape(torch):
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.zeros(2).register_hook(print)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: g.sum())
    with pytest.raises(RuntimeError, match="must keep the gradient's shape"):
        (x * x).sum().backward()


def test_contexts_and_hooks_are_freed(torch, exp):
    class Probe:
        pass

    def run(backward):
        probe = Probe()
        x = torch.tensor([1.0], requires_grad=True)
        y = exp.apply(x)
        y.grad_fn.probe = probe
        y.register_hook(lambda g, probe=probe: None)
        if backward:
            y.backward()
        return weakref.ref(probe)

    for backward in (True, False):
        alive = run(backward)
        torch.synchronize()
        gc.collect()
        assert alive() is None, backward


# ---- anomaly mode


def test_anomaly_mode_names_the_forward_line(torch):
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = x.sqrt()
        z = (y * 0).sum()  # 0 * inf on the way back
        with pytest.warns(UserWarning, match=r"test_autograd_function\.py"):
            with pytest.raises(RuntimeError, match="sqrt.*nan values in its 0th"):
                z.backward()
    y = x.sqrt()
    (y * 0).sum().backward()
    assert x.grad.isnan().tolist() == [True, False]


def test_anomaly_mode_explains_changed_tensors(torch):
    with torch.autograd.detect_anomaly():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = x.exp()
        y.add_(1)
        with pytest.warns(UserWarning, match=r"y = x\.exp\(\)"):
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                y.sum().backward()


def test_a_function_applied_in_backward_lives_as_long_as_the_gradient(torch):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, gradient):
            x, y = ctx.saved_tensors
            return gradient * y, gradient * x

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * Product.apply(x, gradient)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (slope,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert slope.tolist() == [2.0, 4.0]
    (curve,) = torch.autograd.grad((slope * slope).sum(), x)
    assert curve.tolist() == [8.0, 16.0]
    y = Square.apply(x)
    y.sum().backward(create_graph=True)
    (second,) = torch.autograd.grad(x.grad.sum(), x)
    assert second.tolist() == [2.0, 2.0]
    x.grad = None
