# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""PyTorch's autograd over the daemon's elements, as over the CPU's."""

import threading

import pytest
import torch
from torch.utils.checkpoint import checkpoint


def both(function):
    """Runs function(device) on both devices; nested lists of numbers must agree."""

    def test(device):
        ours, theirs = (function(d) for d in (device, "cpu"))
        assert len(ours) == len(theirs) > 0
        for one, other in zip(ours, theirs):
            torch.testing.assert_close(
                torch.as_tensor(one).cpu(), torch.as_tensor(other), rtol=1e-5, atol=1e-6
            )

    test.__doc__ = function.__doc__
    return test


def numbers(device, *shape, grad=True):
    values = torch.linspace(-1, 1, int(torch.tensor(shape).prod())).reshape(shape)
    return values.to(device).requires_grad_(grad)


@both
def test_hooks(device):
    x = numbers(device, 3, 4)
    y = (x * 2).tanh()
    y.register_hook(lambda g: g * 3)
    seen = []
    x.register_hook(lambda g: seen.append(g.clone()))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad * 2))
    y.sum().backward()
    return [x.grad, *seen]


@both
def test_module_hooks(device):
    layer = torch.nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.copy_(numbers("cpu", 2, 4))
        layer.bias.fill_(0.5)
    layer.to(device)
    seen = []
    layer.register_forward_hook(lambda m, i, o: o * 2)
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(go[0].clone()))
    x = numbers(device, 3, 4)
    layer(x).square().sum().backward()
    return [x.grad, layer.weight.grad, *seen]


@both
def test_create_graph(device):
    x = numbers(device, 5)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * x).sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    return [first, second, third]


@both
def test_double_backward_of_a_convolution(device):
    x, w = numbers(device, 2, 3, 6, 6), numbers(device, 4, 3, 3, 3)
    y = torch.nn.functional.conv2d(x, w, padding=1)
    grads = torch.autograd.grad(y.square().sum(), (x, w), create_graph=True)
    sum(g.square().sum() for g in grads).backward()
    return [x.grad, w.grad]


@both
def test_checkpoint(device):
    x = numbers(device, 4, 4)

    def block(x):
        return torch.nn.functional.gelu(x @ x).sin()

    y = checkpoint(block, x, use_reentrant=False)
    checkpoint(block, y, use_reentrant=True).sum().backward()
    return [x.grad]


@both
def test_vmap(device):
    x, w = numbers(device, 3, 4, grad=False), numbers(device, 4, grad=False)
    per_row = torch.func.vmap(
        torch.func.grad(lambda r, w: (r * w).tanh().sum()), (0, None)
    )
    return [per_row(x, w), torch.func.vmap(torch.dot, (0, None))(x, w)]


@both
def test_jvp_and_jacobians(device):
    x, t = numbers(device, 4, grad=False), numbers(device, 4, grad=False).cos()

    def f(x):
        return (x.exp() * x.sin()).cumsum(0)

    value, tangent = torch.func.jvp(f, (x,), (t,))
    return [
        value,
        tangent,
        torch.func.jacrev(f)(x),
        torch.func.jacfwd(f)(x),
        torch.func.hessian(lambda x: f(x).sum())(x),
    ]


@both
def test_functional_call(device):
    layer = torch.nn.Linear(3, 2).to(device)
    own = {"weight": numbers(device, 2, 3), "bias": numbers(device, 2)}

    def loss(parameters, x):
        return torch.func.functional_call(layer, parameters, (x,)).square().sum()

    grads = torch.func.grad(loss)(own, numbers(device, 5, 3, grad=False))
    return [grads["weight"], grads["bias"]]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(context, grad):
        (x,) = context.saved_tensors
        return grad * 3 * x * x


@both
def test_a_function_of_the_programs_own(device):
    x = numbers(device, 6)
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return [first, second]


def test_anomalies_are_found(device):
    x = torch.zeros(3, device=device, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        with torch.autograd.detect_anomaly():
            with pytest.raises(RuntimeError, match="SqrtBackward0.*nan values"):
                (x.sqrt() * 0).sum().backward()


@both
def test_backward_in_a_thread(device):
    x = numbers(device, 4, 4)
    loss = (x @ x).relu().sum()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    return [x.grad]


@both
def test_writes_through_views(device):
    x = numbers(device, 4, 4)
    y = x * 2
    y[1].mul_(3)
    y.t()[2].add_(y[0])
    y.view(-1)[5] = 7
    y.diagonal().zero_()
    y.square().sum().backward()
    return [y.detach(), x.grad]


def test_a_write_after_saving_is_an_error(device):
    x = numbers(device, 4)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@both
def test_retained_gradients(device):
    x = numbers(device, 4)
    y = x.sin()
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    return [x.grad, y.grad]


@both
def test_gradients_accumulate(device):
    x = numbers(device, 4)
    for power in (1, 2, 3):
        (x**power).sum().backward()
    before = x.grad.clone()
    x.grad.zero_()
    (x * x).sum().backward()
    return [before, x.grad]


@both
def test_no_grad_and_inference_mode(device):
    x = numbers(device, 4)
    with torch.no_grad():
        y = x * 2
    with torch.inference_mode():
        z = x * 3
    assert not y.requires_grad and z.is_inference()
    return [y, z]


@both
def test_forward_mode(device):
    x, t = numbers(device, 4, grad=False), numbers(device, 4, grad=False).exp()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, t)
        result = torch.autograd.forward_ad.unpack_dual(dual.sigmoid() * dual)
    return [result.primal, result.tangent]


def test_gradcheck(device):
    x = torch.linspace(0.1, 1, 6, dtype=torch.float64, device=device).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: (x.log() * x.sqrt()).cumprod(0), (x,))
    assert torch.autograd.gradgradcheck(lambda x: x.tanh() * x, (x,))


@both
def test_saved_tensors_elsewhere(device):
    x = numbers(device, 4, 4)
    with torch.autograd.graph.save_on_cpu():
        y = (x @ x).tanh()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t) or len(kept) - 1, lambda i: kept[i]
    ):
        z = (y * y).exp().sum()
    z.backward()
    return [x.grad]


@both
def test_hooks_on_several_tensors(device):
    x, y = numbers(device, 3), numbers(device, 3)
    seen = []
    torch.autograd.graph.register_multi_grad_hook(
        (x, y), lambda grads: seen.append(sum(g.sum() for g in grads))
    )
    (x * y).sum().backward()
    return seen


class Swish(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x.sigmoid()

    @staticmethod
    def setup_context(context, inputs, output):
        context.save_for_backward(*inputs)
        context.save_for_forward(*inputs)

    @staticmethod
    def backward(context, grad):
        (x,) = context.saved_tensors
        s = x.sigmoid()
        return grad * (s + x * s * (1 - s))

    @staticmethod
    def jvp(context, tangent):
        (x,) = context.saved_tensors
        s = x.sigmoid()
        return tangent * (s + x * s * (1 - s))


@both
def test_a_function_under_transforms(device):
    x = numbers(device, 3, 4, grad=False)
    each = torch.func.vmap(torch.func.grad(lambda r: Swish.apply(r).sum()))
    return [each(x), torch.func.jvp(Swish.apply, (x,), (x.cos(),))[1]]


@both
def test_gradients_of_each_sample(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU(), torch.nn.Flatten()
    ).to(device)
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def loss(parameters, x):
        result = torch.func.functional_call(model, parameters, (x.unsqueeze(0),))
        return result.square().sum()

    x = numbers(device, 4, 2, 5, 5, grad=False)
    each = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    return list(each.values())


@both
def test_vmap_of_views_and_writes(device):
    def row(x, i):
        y = x.clone()
        y[1:].mul_(2)
        return y.view(2, 2).t().gather(0, i)

    x = numbers(device, 3, 4, grad=False)
    i = torch.tensor([[[0, 1]], [[1, 0]], [[1, 1]]], device=device)
    return [torch.func.vmap(row)(x, i), torch.func.vmap(torch.sum, 1)(x)]


@both
def test_jacobian_and_hessian_of_autograd(device):
    x = numbers(device, 3, grad=False)
    return [
        torch.autograd.functional.jacobian(lambda x: x.sin() * x.sum(), x),
        torch.autograd.functional.hessian(lambda x: (x**3).prod(), x),
        torch.autograd.functional.vhp(lambda x: x.exp().sum(), x, x)[1],
    ]
