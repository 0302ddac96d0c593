# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""backward, grad, grad mode, and what `.grad` is."""

import gc
import weakref

import pytest


def test_backward_accumulates(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    assert x.grad.tolist() == [5.0, 7.0]
    x.grad = None
    assert x.grad is None
    x.grad = torch.ones(2)
    assert x.grad is x.grad
    x.grad.zero_()
    assert x.grad.tolist() == [0.0, 0.0]


def test_grad_assignment_is_checked(torch):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="Tensor or None"):
        x.grad = 1
    with pytest.raises(RuntimeError, match="f32"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError):
        x.grad = x


def test_leaf_flags_and_grad_fn(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y.sum()
    assert x.is_leaf and x.grad_fn is None and x.requires_grad
    assert not y.is_leaf and y.requires_grad
    assert y.grad_fn.name() == "MulBackward0"
    assert z.grad_fn.next_functions[0][0].name() == "MulBackward0"
    assert not y.detach().requires_grad and y.detach().is_leaf
    assert not x.data.requires_grad
    assert not (x > 0).requires_grad
    with pytest.raises(RuntimeError, match="leaf variables"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1]).requires_grad_()
    with pytest.raises(TypeError):
        x.requires_grad = 1


def test_grad_mode(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def f():
        return (x * 2).requires_grad

    @torch.no_grad
    def g():
        return (x * 2).requires_grad

    @torch.no_grad()
    def generator():
        yield (x * 2).requires_grad
        yield (x * 2).requires_grad

    assert f() is False and g() is False
    assert f.__name__ == "f"
    seen = []
    for flag in generator():
        seen.append((flag, torch.is_grad_enabled()))
    assert seen == [(False, True), (False, True)]
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.inference_mode():
        assert not torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError):
        with torch.no_grad():
            1 / 0
    assert torch.is_grad_enabled()


def test_views_of_inference_mode_are_not_written_outside(torch):
    """As PyTorch 2.15: where what they are views of requires gradients."""
    plain = torch.ones(2)
    weight = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        of_plain, of_weight = plain.view(2, 1), weight.view(2, 1)
        made = torch.ones(1)
    assert of_plain.add_(1).tolist() == [[2], [2]]
    with torch.no_grad():
        assert of_weight.add_(1).tolist() == [[2], [2]]
    with torch.inference_mode():
        of_weight.add_(1)
    with pytest.raises(RuntimeError, match="view was created in inference mode"):
        of_weight.add_(1)
    assert weight.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="do not track version counter"):
        made._version
    assert plain._version == 1


def test_inference_tensors_take_no_part_in_gradients(torch):
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
        made = torch.ones(2)
        made.add_(1)  # inside of the mode all is allowed
        view = made[:1]
    normal = torch.ones(2)
    assert not torch.is_inference_mode_enabled()
    assert made.is_inference() and view.is_inference()
    assert not normal.is_inference() and not made.clone().is_inference()
    for tensor in (made, view, made.detach(), made.data):
        with pytest.raises(RuntimeError, match="inference tensor outside Infer"):
            tensor.requires_grad_(True)
        with pytest.raises(RuntimeError, match="Inplace update to inference"):
            tensor.mul_(3)
    with pytest.raises(RuntimeError, match="Inplace update to inference"):
        made[0] = 5
    assert made.tolist() == [2, 2]
    with torch.inference_mode():
        normal.add_(1)  # a normal tensor stays one
        made.mul_(2)
        with torch.inference_mode(False):
            assert torch.is_grad_enabled()
            weight = torch.ones(2, requires_grad=True)
            assert (weight * 2).requires_grad
    assert normal.requires_grad_(True).tolist() == [2, 2]
    assert made.clone().requires_grad_(True).tolist() == [4, 4]

    @torch.inference_mode
    def bare(x):
        return x * 2

    @torch.inference_mode()
    def called(x):
        return x * 2

    assert bare(normal).is_inference() and called(normal).is_inference()


def test_grad_mode_is_per_thread(torch):
    import threading

    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_autograd_grad(torch):
    x = torch.tensor(3.0, requires_grad=True)
    y = torch.tensor(2.0, requires_grad=True)
    z = x * x * y
    gx, gy = torch.autograd.grad(z, (x, y), retain_graph=True)
    assert (gx.item(), gy.item()) == (12.0, 9.0)
    assert x.grad is None
    (gx,) = torch.autograd.grad([z], [x], grad_outputs=[torch.tensor(2.0)])
    assert gx.item() == 24.0
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(x * 2, (x, w))
    grads = torch.autograd.grad(x * 2, (x, w), allow_unused=True)
    assert grads[0].item() == 2.0 and grads[1] is None


def test_higher_derivatives(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x**4
    for expected in (32.0, 48.0, 48.0, 24.0):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected)


def test_backward_with_gradient_and_inputs(torch):
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    z = x * 2 + y * 3
    z.backward(torch.tensor([1.0, 10.0]), retain_graph=True)
    assert x.grad.tolist() == [2.0, 20.0]
    z.sum().backward(inputs=[y])
    assert x.grad.tolist() == [2.0, 20.0]
    assert y.grad.tolist() == [6.0, 33.0]


def test_backward_errors(torch):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(()).backward()
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(torch.ones(3))
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()
        x.grad.tolist()


def test_changed_saved_tensor_is_an_error(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"\[add_\]"):
        z.backward()
        x.grad.tolist()


def test_inplace_on_a_leaf_is_an_error(torch):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x += 1
    with torch.no_grad():
        x += 1
    assert x.tolist() == [2.0, 2.0]
    assert x.requires_grad and x.is_leaf


def test_data_assignment_keeps_the_object(torch):
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    x.data = torch.full((2,), 5.0)
    assert x.tolist() == [5.0, 5.0]
    assert x.requires_grad and x.is_leaf and x.grad.tolist() == [2.0, 2.0]
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    x.data.mul_(2)
    assert x.tolist() == [10.0, 10.0]


def test_retain_grad(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4.0, 4.0]
    assert x.grad.tolist() == [8.0, 8.0]


def test_detach_inplace(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert y.detach_() is y
    assert not y.requires_grad and y.tolist() == [2.0, 2.0]


def test_subclasses(torch):
    class Named(torch.Tensor):
        def __new__(cls, data, name):
            self = torch.Tensor._make_subclass(cls, data, True)
            self.name = name
            return self

    x = Named(torch.ones(2), "weight")
    assert isinstance(x, torch.Tensor) and x.requires_grad and x.name == "weight"
    assert type(x * 2) is Named
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    watched = weakref.ref(x)
    x.itself = x
    del x
    gc.collect()
    assert watched() is None


def test_gradients_of_composites(torch):
    x = torch.tensor([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]], requires_grad=True)
    x.max(1).values.sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    z = torch.zeros(3, requires_grad=True)
    z.norm().backward()
    assert z.grad.tolist() == [0.0, 0.0, 0.0]
    v = torch.tensor([1.0, 3.0], requires_grad=True)
    v.std().backward()
    assert v.grad.tolist() == pytest.approx([-0.70710678, 0.70710678])


def test_deep_graphs_do_not_overflow_the_stack(torch):
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    # A chain that nobody differentiates is freed without recursion, too.
    for _ in range(100_000):
        y = y * x
    del y
    torch.synchronize()
    assert (x * 2).item() == 2.0
