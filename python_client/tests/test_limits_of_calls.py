# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""No call ends its own session: what is large is carried, what is too large is
refused by the client with the values in it."""

import pytest

MANY = 70_000
TOO_MANY = (1 << 20) + 1


def stack(torch):
    p = torch.ones(1)
    assert torch.stack([p] * MANY).sum().item() == MANY


def cat_gradient(torch):
    p = torch.ones(1, requires_grad=True)
    torch.cat([p] * MANY).sum().backward()
    assert p.grad.item() == MANY


def adam(torch):
    params = [torch.zeros(1, requires_grad=True) for _ in range(17_000)]
    for p in params:
        p.grad = torch.ones(1)
    torch.optim.Adam(params, lr=0.5).step()
    assert params[-1].item() == pytest.approx(-0.5)
    torch.nn.utils.clip_grad_norm_(params * 5, 1.0)


def backward_of_many_leaves(torch):
    leaves = [torch.ones(1, requires_grad=True) for _ in range(MANY)]
    torch.cat(leaves).sum().backward()
    assert leaves[-1].grad.item() == 1
    found = torch.autograd.grad(torch.cat(leaves).sum(), leaves)
    assert len(found) == MANY


def failed_backward_of_many_leaves(torch):
    """A read of it tells of all the gradients that were not made."""
    leaves = [torch.ones(1, requires_grad=True) for _ in range(MANY)]
    x = torch.cat(leaves)
    y = x * x
    with torch.no_grad():
        x.add_(1)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        leaves[0].grad.item()


def function(torch):
    class Many(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            return tuple(x * 2 for x in xs)

        @staticmethod
        def backward(ctx, *grads):
            return tuple(g * 2 for g in grads)

    xs = [torch.ones(1, requires_grad=True) for _ in range(MANY)]
    torch.cat(Many.apply(*xs)).sum().backward()
    assert xs[-1].grad.item() == 2


def keep_many(torch):
    p = torch.ones(1)
    torch.keep("many", {str(i): p for i in range(MANY)})
    assert len(torch.kept("many")) == MANY
    torch.keep("many", None)


def hooks_come_and_go(torch):
    x = torch.ones(1, requires_grad=True)
    for _ in range(5000):
        x.register_hook(lambda g: None).remove()
    seen = []
    x.register_hook(seen.append)
    (x * 2).backward()
    assert len(seen) == 1


def long_names(torch):
    kind = type("N" + "ä" * 2000, (torch.autograd.Function,), {})
    kind.forward = staticmethod(lambda ctx, x: x * 2)
    kind.backward = staticmethod(lambda ctx, g: g * 2)
    x = torch.ones(1, requires_grad=True)
    kind.apply(x).backward()
    assert x.grad.item() == 2


def long_list_of_releases(torch):
    many = [torch.ones(()) for _ in range(MANY)]
    del many


def memory_of_many_tensors(torch):
    many = [torch.ones(()) for _ in range(MANY)]
    torch.synchronize()
    assert torch.cuda.memory_snapshot() is not None
    del many


CARRIED = [
    stack,
    cat_gradient,
    adam,
    backward_of_many_leaves,
    failed_backward_of_many_leaves,
    function,
    keep_many,
    hooks_come_and_go,
    long_names,
    long_list_of_releases,
    memory_of_many_tensors,
]


@pytest.mark.parametrize("call", CARRIED, ids=lambda call: call.__name__)
def test_large_calls_are_carried(torch, call):
    before = torch.arange(3.0)
    call(torch)
    assert before.tolist() == [0, 1, 2]


def refuse_stack(torch):
    torch.stack([torch.ones(1)] * TOO_MANY)


def refuse_inputs(torch):
    # Past what one list may have: several lists in one call.
    p = torch.ones(1)
    torch.cat([torch.cat([p] * 2)] * TOO_MANY)


def refuse_kept_name(torch):
    torch.keep("n" * 1025, torch.ones(1))


def refuse_kept_list(torch):
    p = torch.ones([1] * 30)
    torch.keep("k", {"n" * 900 + str(i): p for i in range(40_000)})


def refuse_hook(torch):
    x = torch.ones(1, requires_grad=True)
    for _ in range((1 << 16) + 1):
        x.register_hook(id)


def refuse_function(torch):
    class Wide(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            return xs[0] * 1

        @staticmethod
        def backward(ctx, grad):
            return (grad,) * TOO_MANY

    Wide.apply(*[torch.ones(1, requires_grad=True)] * TOO_MANY)


def refuse_string(torch):
    a = torch.ones(2)
    torch.publish("p" * 300, {"a": a})


def refuse_publication(torch):
    a = torch.ones(2)
    torch.publish("p", {str(i) + "k" * 400: a for i in range(MANY)})


def refuse_dimensions(torch):
    torch.ones([1] * 70)


def refuse_sizes(torch):
    torch.ones(2**40, 2**40)


def refuse_list(torch):
    torch.ones(2, 2).permute(*range(TOO_MANY))


def refuse_equation(torch):
    torch.einsum("a" * 100_000, torch.ones(2))


REFUSED = [
    refuse_stack,
    refuse_inputs,
    refuse_kept_name,
    refuse_kept_list,
    refuse_hook,
    refuse_function,
    refuse_string,
    refuse_publication,
    refuse_dimensions,
    refuse_sizes,
    refuse_list,
    refuse_equation,
]


@pytest.mark.parametrize("call", REFUSED, ids=lambda call: call.__name__)
def test_what_is_too_large_is_refused_and_the_session_goes_on(torch, call):
    before = torch.arange(3.0)
    with pytest.raises((RuntimeError, ValueError, IndexError, TypeError)) as caught:
        call(torch)
    assert any(c.isdigit() for c in str(caught.value)), caught.value
    assert len(str(caught.value)) < 2000
    assert before.tolist() == [0, 1, 2]
