# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Losses against PyTorch's: every reduction, values and gradients."""

import numpy as np
import pytest

import holdfast
import holdfast.nn.functional as F
from holdfast import nn
from torch_peer import assert_same_results, leaves, torch

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

REDUCTIONS = ["mean", "sum", "none"]
rng = np.random.default_rng(5)


def normal(*shape):
    return rng.standard_normal(shape).astype("float32")


def uniform(*shape):
    return rng.random(shape).astype("float32")


def signs(*shape):
    return np.where(rng.random(shape) < 0.5, -1, 1).astype("float32")


SCORES, CLASSES = normal(6, 4), np.array([0, 3, 1, 1, 2, 0])
SOME_IGNORED = np.array([0, -100, 1, -100, 2, 0])
IMAGE, IMAGE_CLASSES = normal(2, 3, 4, 5), rng.integers(0, 3, (2, 4, 5))
SOFT = uniform(6, 4)
WEIGHT = np.array([0.5, 2, 1, 3], "float32")
COUNTS = rng.poisson(3, (4, 3)).astype("float32")

# Name, inputs, options; arrays among the options become tensors.
LOSSES = [
    ("CrossEntropyLoss", [SCORES, CLASSES], {}),
    ("CrossEntropyLoss", [SCORES, CLASSES], {"weight": WEIGHT}),
    ("CrossEntropyLoss", [SCORES, CLASSES], {"label_smoothing": 0.1}),
    (
        "CrossEntropyLoss",
        [SCORES, CLASSES],
        {"weight": WEIGHT, "label_smoothing": 0.3, "ignore_index": 1},
    ),
    ("CrossEntropyLoss", [SCORES, SOME_IGNORED], {}),
    ("CrossEntropyLoss", [SCORES, SOME_IGNORED], {"label_smoothing": 0.2}),
    ("CrossEntropyLoss", [IMAGE, IMAGE_CLASSES], {"label_smoothing": 0.2}),
    ("CrossEntropyLoss", [IMAGE, IMAGE_CLASSES], {}),
    ("CrossEntropyLoss", [SCORES[0], CLASSES[1]], {}),
    ("CrossEntropyLoss", [SCORES, SOFT], {}),
    ("CrossEntropyLoss", [SCORES, SOFT], {"weight": WEIGHT, "label_smoothing": 0.1}),
    ("CrossEntropyLoss", [IMAGE, uniform(2, 3, 4, 5)], {}),
    ("NLLLoss", [SCORES, CLASSES], {"weight": WEIGHT}),
    ("NLLLoss", [SCORES, SOME_IGNORED], {}),
    ("NLLLoss", [IMAGE, IMAGE_CLASSES], {"ignore_index": 2}),
    ("MSELoss", [normal(3, 4), normal(3, 4)], {}),
    ("L1Loss", [normal(3, 4), normal(3, 4)], {}),
    ("SmoothL1Loss", [2 * normal(3, 4), normal(3, 4)], {}),
    ("SmoothL1Loss", [2 * normal(3, 4), normal(3, 4)], {"beta": 0.3}),
    ("SmoothL1Loss", [normal(3, 4), normal(3, 4)], {"beta": 0.0}),
    ("HuberLoss", [2 * normal(3, 4), normal(3, 4)], {"delta": 0.7}),
    ("KLDivLoss", [-uniform(3, 4), uniform(3, 4)], {}),
    ("KLDivLoss", [-uniform(3, 4), -uniform(3, 4)], {"log_target": True}),
    ("BCELoss", [uniform(3, 4), uniform(3, 4)], {}),
    ("BCELoss", [uniform(3, 4), uniform(3, 4)], {"weight": WEIGHT}),
    ("BCEWithLogitsLoss", [30 * normal(3, 4), uniform(3, 4)], {}),
    (
        "BCEWithLogitsLoss",
        [normal(3, 4), uniform(3, 4)],
        {"weight": WEIGHT, "pos_weight": WEIGHT + 1},
    ),
    ("PoissonNLLLoss", [normal(4, 3), COUNTS], {"full": True}),
    ("PoissonNLLLoss", [uniform(4, 3), COUNTS], {"log_input": False}),
    ("GaussianNLLLoss", [normal(4, 3), normal(4, 3), uniform(4, 3)], {"full": True}),
    ("GaussianNLLLoss", [normal(4, 3), normal(4, 3), uniform(4, 1)], {}),
    ("HingeEmbeddingLoss", [normal(4, 3), signs(4, 3)], {"margin": 0.5}),
    ("MarginRankingLoss", [normal(5), normal(5), signs(5)], {"margin": 0.2}),
    ("SoftMarginLoss", [normal(4, 3), signs(4, 3)], {}),
    ("CosineEmbeddingLoss", [normal(4, 3), normal(4, 3), signs(4)], {"margin": 0.1}),
    ("TripletMarginLoss", [normal(4, 3), normal(4, 3), normal(4, 3)], {}),
    (
        "TripletMarginLoss",
        [normal(4, 3), normal(4, 3), normal(4, 3)],
        {"swap": True, "p": 1.0},
    ),
]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name,arrays,options", LOSSES, ids=lambda v: _id(v))
def test_loss(name, arrays, options, reduction):
    ours, theirs = [
        getattr(library.nn, name)(
            reduction=reduction,
            **{
                k: convert(v) if isinstance(v, np.ndarray) else v
                for k, v in options.items()
            },
        )
        for library, convert in [
            (holdfast, holdfast.tensor),
            (torch, torch.from_numpy),
        ]
    ]
    # PyTorch has no gradient for that target.
    count = 1 if name == "SoftMarginLoss" else None
    arrays = [np.asarray(array) for array in arrays]
    our_inputs, their_inputs = leaves(arrays, count)
    assert_same_results(
        ours(*our_inputs),
        theirs(*their_inputs),
        our_inputs,
        their_inputs,
        rtol=1e-4,
        atol=1e-5,
    )


def _id(value):
    if isinstance(value, list):
        return "x".join(str(np.shape(array)) for array in value)
    return "-".join(value) if isinstance(value, dict) else None


def test_kl_div_batchmean():
    arrays = [-uniform(3, 4), uniform(3, 4)]
    ours, theirs = leaves(arrays)
    assert_same_results(
        nn.KLDivLoss(reduction="batchmean")(*ours),
        torch.nn.KLDivLoss(reduction="batchmean")(*theirs),
        ours,
        theirs,
    )


def test_binary_cross_entropy_at_the_ends_is_finite():
    p = holdfast.tensor([0.0, 1.0])
    loss = F.binary_cross_entropy(p, holdfast.tensor([1.0, 1.0]), reduction="none")
    assert loss.tolist() == [100.0, 0.0]


def test_binary_cross_entropy_differentiates_at_the_ends():
    """(p - t) / max(p (1 - p), 1e-12), PyTorch's, where a sigmoid is saturated, too."""
    p = holdfast.tensor([0.0, 0.0, 1.0, 1.0, 1e-30, 0.25, 0.25], requires_grad=True)
    t = holdfast.tensor([0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    loss = F.binary_cross_entropy(p, t, reduction="sum")
    (slope,) = holdfast.autograd.grad(loss, p, create_graph=True)
    expected = [0, -1e12, 1e12, 0, -1e12, 4 / 3, -4]
    assert slope.tolist() == pytest.approx(expected)
    slope[5:].sum().backward()
    assert p.grad[5:].tolist() == pytest.approx([16 / 9, 16])
    logits = holdfast.tensor([200.0, -200.0, 20.0], requires_grad=True)
    F.binary_cross_entropy(logits.sigmoid(), holdfast.ones(3)).backward()
    assert logits.grad.tolist() == [0, 0, 0]


def test_older_reduction_arguments():
    a, b = holdfast.ones(3), holdfast.zeros(3)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.mse_loss(a, b, size_average=False).item() == 3
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert F.mse_loss(a, b, reduce=False).tolist() == [1, 1, 1]


def test_mistakes():
    with pytest.raises(ValueError, match="average is not a valid value for reduction"):
        nn.MSELoss(reduction="average")
    with pytest.raises(RuntimeError, match="label_smoothing must be between"):
        F.cross_entropy(
            holdfast.ones(2, 3), holdfast.tensor([0, 1]), label_smoothing=2.0
        )
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy(holdfast.ones(2), holdfast.ones(3))
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(holdfast.ones(2, 1), holdfast.ones(2))
    with pytest.raises(ValueError, match="target must be"):
        F.cross_entropy(holdfast.ones(2, 3, 4), holdfast.zeros(2, dtype=holdfast.int64))
    with pytest.raises(RuntimeError, match="int64 classes, or probabilities"):
        F.cross_entropy(holdfast.ones(2, 3), holdfast.ones(2))


def test_a_class_out_of_range_is_told_at_the_read():
    loss = F.cross_entropy(holdfast.ones(2, 3), holdfast.tensor([0, 3]))
    with pytest.raises((IndexError, RuntimeError), match="nll_loss"):
        loss.item()


def test_a_batch_of_another_size_is_a_value_error(torch):
    expected = r"Expected input batch_size \(2\) to match target batch_size \(3\)"
    for loss in (torch.nn.CrossEntropyLoss(), torch.nn.NLLLoss()):
        with pytest.raises(ValueError, match=expected):
            loss(torch.ones(2, 4), torch.ones(3, dtype=torch.long))
        with pytest.raises(ValueError, match=r"to match target batch_size \(0\)"):
            loss(torch.ones(2, 4), torch.ones((), dtype=torch.long))
