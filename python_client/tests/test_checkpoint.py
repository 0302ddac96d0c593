# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""utils.checkpoint: the same gradients from less memory."""

import numpy as np
import pytest


@pytest.fixture
def model(torch):
    nn = torch.nn
    return nn.Sequential(
        *[nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.3)) for _ in range(4)]
    )


def ways(torch, model):
    from holdfast.utils.checkpoint import checkpoint, checkpoint_sequential

    def nested(x):
        return checkpoint(lambda y: checkpoint(model[1], model[0](y)), x)

    return {
        "whole": lambda x: checkpoint(model, x),
        "without reentrance": lambda x: checkpoint(model, x, use_reentrant=False),
        "sequential": lambda x: checkpoint_sequential(model, 2, x),
        "nested": lambda x: checkpoint(model[3], checkpoint(model[2], nested(x))),
    }


def backward(torch, loss, tensors):
    loss.backward()
    return [t.grad for t in tensors]


def backward_inputs(torch, loss, tensors):
    # Parameters alone: nothing that goes in as an argument.
    loss.backward(inputs=tensors[1:4])
    assert tensors[0].grad is None and tensors[4].grad is None
    return [t.grad for t in tensors[1:4]]


def grad(torch, loss, tensors):
    return torch.autograd.grad(loss, tensors[1:])


def second(torch, loss, tensors):
    first = torch.autograd.grad(loss, tensors, create_graph=True)
    return torch.autograd.grad(
        sum((g * g).sum() for g in first), tensors, materialize_grads=True
    )


def second_backward(torch, loss, tensors):
    loss.backward(create_graph=True)
    total = sum((t.grad * t.grad).sum() for t in tensors)
    for t in tensors:
        t.grad = None
    return torch.autograd.grad(total, tensors, materialize_grads=True)


@pytest.mark.parametrize("how", ["whole", "without reentrance", "sequential", "nested"])
@pytest.mark.parametrize(
    "differentiate", [backward, backward_inputs, grad, second, second_backward]
)
def test_gradients_are_those_of_the_plain_call(torch, model, how, differentiate):
    x = torch.randn(5, 6, requires_grad=True)
    tensors = [x, *model.parameters()]

    def run(f):
        for t in tensors:
            t.grad = None
        torch.manual_seed(3)
        # One parameter is also used outside.
        loss = f(x).pow(2).sum() + (tensors[1] * 3).sum()
        after = torch.rand(2).tolist()
        gradients = [g.numpy().copy() for g in differentiate(torch, loss, tensors)]
        return gradients, after, torch.rand(2).tolist()

    expected, got = run(model), run(ways(torch, model)[how])
    for a, b in zip(expected[0], got[0]):
        np.testing.assert_allclose(b, a, 1e-5, 2e-5)  # values of up to 20
    # Nor does the stream of random numbers notice.
    assert got[1:] == expected[1:]
    if differentiate is backward:
        assert all((a == b).all() for a, b in zip(expected[0], got[0]))


def test_without_the_random_state_masks_differ(torch):
    from holdfast.utils.checkpoint import checkpoint

    x = torch.ones(200, requires_grad=True)
    drop = torch.nn.Dropout(0.5)
    y = checkpoint(drop, x)
    y.sum().backward()
    assert (x.grad == y).all()
    x.grad = None
    y = checkpoint(drop, x, preserve_rng_state=False)
    y.sum().backward()
    assert not (x.grad == y).all()


def test_only_parameters_require_a_gradient(torch):
    from holdfast.utils.checkpoint import checkpoint

    layer = torch.nn.Linear(3, 1)
    x = torch.ones(2, 3)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        assert not checkpoint(layer, x, use_reentrant=True).requires_grad
    y = checkpoint(layer, x, use_reentrant=False)
    y.sum().backward()
    assert layer.weight.grad.tolist() == [[2.0, 2.0, 2.0]]
    frozen = checkpoint(torch.sin, x, use_reentrant=False)
    assert not frozen.requires_grad


def test_nests_and_other_values(torch):
    from holdfast.utils.checkpoint import checkpoint

    def f(pair, n, *, scale):
        a, b = pair
        return {"sum": (a + b) * n * scale, "text": "kept", "count": (a > 0).sum()}

    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    out = checkpoint(f, (a, b), 3, scale=a.detach() * 2, use_reentrant=False)
    assert out["text"] == "kept" and not out["count"].requires_grad
    out["sum"].sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [6.0, 6.0]
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(f, (a, b), 3, scale=a)
    with pytest.raises(ValueError, match="segments must be 1 to 2. Got 5"):
        from holdfast.utils.checkpoint import checkpoint_sequential

        checkpoint_sequential([torch.sin, torch.cos], 5, a)
    with torch.no_grad():
        assert not checkpoint(torch.sin, a).requires_grad


def test_changed_inputs_and_errors(torch):
    from holdfast.utils.checkpoint import checkpoint

    x = torch.ones(2, requires_grad=True)
    h = x * 1
    y = checkpoint(torch.sin, h)
    h.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    calls = []

    def fails_again(x):
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("second time")
        return x * 2

    y = checkpoint(fails_again, x)
    with pytest.raises(KeyError, match="second time"):
        y.sum().backward()
    assert x.grad is None


def test_memory_falls(daemon, transport):
    """Peaks of a chain of 16 layers, in a session to itself."""
    import holdfast

    def peak(segments):
        with holdfast.connect(daemon.address(transport)):
            layers = [torch_layer] * 16
            x = holdfast.randn(256, 1024, requires_grad=True)  # 1 MiB
            holdfast.synchronize()
            if segments:
                from holdfast.utils.checkpoint import checkpoint_sequential

                y = checkpoint_sequential(layers, segments, x)
            else:
                y = x
                for layer in layers:
                    y = layer(y)
            y.sum().backward()
            holdfast.synchronize()
            assert x.grad.isfinite().all()
            return holdfast.cuda.max_memory_allocated()

    plain, checkpointed = peak(0), peak(4)
    assert checkpointed < 0.6 * plain, (checkpointed, plain)


def torch_layer(x):
    return (x.tanh() * 1.1).sigmoid()
