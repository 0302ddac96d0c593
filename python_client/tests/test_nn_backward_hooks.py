# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Backward hooks of modules, and hooks after accumulation."""

import numpy as np
import pytest


def lists(gradients):
    return [None if g is None else g.tolist() for g in gradients]


def program(torch, log):
    """The same in Holdfast and PyTorch: what hooks saw, and the gradients."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(torch.arange(p.numel()).reshape(p.shape) * 0.1 + i)
    for name, module in (("linear", model[0]), ("tanh", model[1])):
        module.register_full_backward_hook(
            lambda m, gi, go, name=name: log.append((name, lists(gi), lists(go)))
        )
    model[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    x = torch.tensor([[1.0, -2.0]], requires_grad=True)
    model(x).sum().backward()
    first = [x.grad.tolist()] + lists(p.grad for p in model.parameters())
    # No argument requires a gradient: the hook comes with the outputs'.
    log.append("frozen")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(x.detach()).sum().backward()
    return first + lists(p.grad for p in model.parameters())


def test_full_backward_hooks_agree_with_pytorch(torch):
    peer = pytest.importorskip("torch")
    ours, theirs = [], []
    np.testing.assert_equal(
        len(flat := flatten(program(torch, ours))), len(flatten(program(peer, theirs)))
    )
    assert flat == pytest.approx(flatten(program(peer, [])), rel=1e-5)
    assert [x[0] for x in ours] == [x[0] for x in theirs]
    for our, their in zip(ours, theirs):
        assert flatten(our) == pytest.approx(flatten(their), rel=1e-5, abs=1e-6)


def flatten(nest):
    """Numbers of nested lists; None counts as -99, text as nothing."""
    if isinstance(nest, (list, tuple)):
        return [x for item in nest for x in flatten(item)]
    if isinstance(nest, str):
        return []
    return [-99.0 if nest is None else nest]


def test_hooks_of_several_inputs_and_outputs(torch):
    class Two(torch.nn.Module):
        def forward(self, a, n, b):
            return a * n, n, b * a

    seen = []
    model = Two()
    model.register_full_backward_hook(
        lambda m, gi, go: seen.append((m is model, lists(gi), lists(go)))
    )
    a = torch.tensor([2.0], requires_grad=True)
    b = torch.tensor([5.0], requires_grad=True)
    first, n, _ = model(a, 3, b)
    assert n == 3
    first.sum().backward()
    assert seen == [(True, [[3.0], None, None], [[1.0], None, None])]
    assert a.grad.tolist() == [3.0]


def test_pre_hooks_change_what_the_module_gets(torch):
    model = torch.nn.Tanh()
    order = []
    model.register_full_backward_pre_hook(
        lambda m, go: order.append("pre") or (go[0] * 10,)
    )
    handle = model.register_full_backward_pre_hook(
        lambda m, go: order.append("first"), prepend=True
    )
    model.register_full_backward_hook(lambda m, gi, go: order.append(go[0].tolist()))
    x = torch.zeros(1, requires_grad=True)
    model(x).backward()
    assert order == ["first", "pre", [10.0]] and x.grad.tolist() == [10.0]
    handle.remove()
    model(x).backward()
    assert order[3:] == ["pre", [10.0]]


def test_a_shared_module_is_hooked_per_call(torch):
    model = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(3.0)
    seen = []
    model.register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].item()))
    x = torch.ones(1, requires_grad=True)
    model(model(x)).backward()
    assert seen == [3.0, 9.0] and x.grad.item() == 9.0


def test_modules_that_write_in_place(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(inplace=True))
    seen = []
    model[1].register_full_backward_hook(lambda m, gi, go: seen.append(lists(gi)))
    x = torch.ones(1, 2, requires_grad=True)
    y = model(x)
    (y + 1).sum().backward()
    assert seen[0] == [((y > 0) * 1.0).tolist()]


@pytest.mark.parametrize(
    "result, message",
    [(lambda gi: gi + gi, "got 2, but expected 1"), (lambda gi: 5, "len")],
)
def test_wrong_results_of_hooks(torch, result, message):
    model = torch.nn.Tanh()
    model.register_full_backward_hook(lambda m, gi, go: result(gi))
    x = torch.zeros(1, requires_grad=True)
    with pytest.raises((RuntimeError, TypeError), match=message):
        model(x).backward()


def test_no_hooks_without_a_graph(torch):
    model = torch.nn.Tanh()
    model.register_backward_hook(lambda m, gi, go: 1 / 0)
    with torch.no_grad():
        y = model(torch.ones(1, requires_grad=True))
    assert not y.requires_grad


# ---- Tensor.register_post_accumulate_grad_hook


def test_hooks_after_accumulation(torch):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    handle = w.register_post_accumulate_grad_hook(
        lambda p: seen.append(p.grad.tolist())
    )
    (w * 3).sum().backward()
    (w * 3).sum().backward()
    assert seen == [[3.0, 3.0], [6.0, 6.0]]
    torch.autograd.grad((w * 3).sum(), w)
    handle.remove()
    (w * 3).sum().backward()
    assert len(seen) == 2
    with pytest.raises(RuntimeError, match="non-leaf"):
        (w * 1).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(print)


def test_an_optimizer_in_the_backward(torch):
    w = torch.tensor([1.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)

    def step(p):
        optimizer.step()
        optimizer.zero_grad()

    w.register_post_accumulate_grad_hook(step)
    (w * 1).sum().backward()
    assert w.tolist() == [0.5] and w.grad is None


def test_hooks_on_nodes_are_refused_by_name(torch):
    y = torch.ones(1, requires_grad=True) * 2
    for name in ("register_hook", "register_prehook"):
        with pytest.raises(NotImplementedError, match="no hooks on grad_fn"):
            getattr(y.grad_fn, name)(print)
