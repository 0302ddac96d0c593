# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A model trained for three steps on device "holdfast" and on the CPU, from the same
weights: losses, gradients and outputs are compared."""

import copy

import torch

STEPS = 3
# Largest difference that is allowed, of losses and outputs relative to the largest
# value, of gradients relative to the largest gradient of the model. Sums of float32
# are taken in another order on the daemon.
TOLERANCE = 2e-4
# The same in float64, where those models are compared whose batch norms see so few
# values that float32 leaves little of a gradient.
TOLERANCE_OF_DOUBLE = 1e-5


def no_chance(model):
    """Dropout and its kind drop nothing: the two devices draw different numbers."""
    for module in model.modules():
        name = type(module).__name__.lower()
        fields = ["drop_prob", "drop_rate"]
        if "drop" in name or name == "stochasticdepth":
            fields.append("p")
        for field in fields:
            if isinstance(getattr(module, field, None), float):
                setattr(module, field, 0.0)
    return model


def without_dropout(config):
    """A configuration of Hugging Face's whose model drops nothing."""
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict"):
            without_dropout(value)
        elif isinstance(value, float) and "drop" in name:
            setattr(config, name, 0.0)
        elif isinstance(value, list) and "drop" in name:
            setattr(config, name, [0.0 if isinstance(v, float) else v for v in value])
    return config


def to(value, device):
    """The same structure with every tensor on `device`."""
    if isinstance(value, dict):
        return {k: to(v, device) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to(v, device) for v in value)
    return value.to(device) if hasattr(value, "to") else value


def in_double(value):
    """The same structure with float64 where it had float32."""
    if isinstance(value, dict):
        return {k: in_double(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(in_double(v) for v in value)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def tensors(value):
    """All tensors of a structure, in its order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for name in value:
            yield from tensors(value[name])
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)


def assert_near(ours, theirs, tolerance=TOLERANCE, what="output"):
    """All tensors of two structures have the same shapes, dtypes and, up to
    `tolerance` times the largest value, elements."""
    ours, theirs = list(tensors(ours)), list(tensors(theirs))
    assert len(ours) == len(theirs)
    for i, (one, other) in enumerate(zip(ours, theirs)):
        assert one.dtype == other.dtype and one.shape == other.shape, (what, i)
        one, other = one.detach().cpu(), other.detach().cpu()
        if not other.is_floating_point() and not other.is_complex():
            assert torch.equal(one, other), (what, i)
        elif other.numel():
            _assert_near(one, other, tolerance, f"{what} {i}")


def _assert_near(one, other, tolerance, what):
    finite = torch.isfinite(other)
    assert torch.equal(torch.isfinite(one), finite), what
    one, other = (torch.where(finite, t, 0) for t in (one, other))
    scale = max(other.abs().max().item(), 1e-3)
    worst = (one - other).abs().max().item() / scale
    assert worst <= tolerance, f"{what}: {worst:.2e} of the largest"


def gradients(model):
    return {
        n: p.grad.detach().cpu()
        for n, p in model.named_parameters()
        if p.grad is not None
    }


def assert_gradients_near(ours, theirs, tolerance):
    assert ours.keys() == theirs.keys()
    scale = max((g.abs().max().item() for g in theirs.values() if g.numel()), default=0)
    assert scale > 0
    for name, grad in theirs.items():
        if grad.numel():
            worst = (ours[name] - grad).abs().max().item() / scale
            assert worst <= tolerance, f"gradient of {name}: {worst:.2e} of the largest"


def loss_of(output):
    """What Hugging Face's models return, or a mean of squares of all that is there."""
    loss = getattr(output, "loss", None)
    if loss is not None:
        return loss
    floats = [t for t in tensors(output) if t.is_floating_point() and t.requires_grad]
    return sum(t.float().square().mean() for t in floats)


def train(model, batch, loss, optimizer):
    """Losses of three steps and the gradients of the first."""
    model.train()
    losses, first = [], None
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss(model(**batch) if isinstance(batch, dict) else model(*batch))
        value.backward()
        if first is None:
            first = gradients(model)
        optimizer.step()
        losses.append(value.item())
    return losses, first


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def adamw(parameters):
    # A large eps: gradients that are only noise shall not be steps of full length.
    return torch.optim.AdamW(parameters, lr=1e-3, eps=1e-4)


def compare(
    model,
    batch,
    device,
    loss=loss_of,
    optimizer=sgd,
    tolerance=TOLERANCE,
    evaluate=True,
    double=False,
):
    """Trains a copy of `model` on `device` and `model` itself on the CPU; returns both
    for what a test wants to see besides. `batch` is a dictionary of keyword arguments
    or a list of positional ones."""
    if double:
        model, batch, tolerance = model.double(), in_double(batch), TOLERANCE_OF_DOUBLE
    no_chance(model)
    ours = copy.deepcopy(model).to(device)
    assert all(p.device.type == device for p in ours.parameters())
    theirs_losses, theirs_first = train(
        model, batch, loss, optimizer(model.parameters())
    )
    ours_losses, ours_first = train(
        ours, to(batch, device), loss, optimizer(ours.parameters())
    )
    assert_gradients_near(ours_first, theirs_first, tolerance)
    assert_near(
        torch.tensor(ours_losses), torch.tensor(theirs_losses), tolerance, "loss"
    )
    assert len(set(ours_losses)) > 1
    if evaluate:
        evaluated(ours, model, batch, device, 5 * tolerance)
    return ours, model


def evaluated(ours, theirs, batch, device, tolerance):
    """Outputs without gradients, after the steps."""
    ours.eval(), theirs.eval()
    with torch.no_grad():
        if isinstance(batch, dict):
            expected, found = theirs(**batch), ours(**to(batch, device))
        else:
            expected, found = theirs(*batch), ours(*to(batch, device))
    assert_near(found, expected, tolerance)
