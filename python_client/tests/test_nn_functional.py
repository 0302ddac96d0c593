# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""nn.functional beyond the layers: the rest against PyTorch."""

import numpy as np
import pytest

import holdfast
import holdfast.nn.functional as F
from torch_peer import assert_close, assert_same_results, leaves, torch

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

rng = np.random.default_rng(2)


def normal(*shape):
    return rng.standard_normal(shape).astype("float32")


# Name, tensors, further arguments.
CASES = [
    ("bilinear", [normal(4, 2), normal(4, 3), normal(5, 2, 3), normal(5)], {}),
    ("conv1d", [normal(2, 3, 9), normal(4, 3, 3), normal(4)], {"padding": 1}),
    ("conv1d", [normal(3, 9), normal(4, 3, 3)], {"stride": 2, "padding": "valid"}),
    ("pad", [normal(2, 3, 4)], {"pad": (1, 2, 0, 1), "value": 3.0}),
    ("pad", [normal(2, 3, 4)], {"pad": (-1, 1)}),
    ("max_pool1d", [normal(2, 3, 9)], {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("avg_pool1d", [normal(2, 3, 9)], {"kernel_size": 3, "padding": 1}),
    ("normalize", [normal(3, 4)], {}),
    ("normalize", [normal(3, 4)], {"p": 1.0, "dim": 0}),
    ("cosine_similarity", [normal(3, 4), normal(3, 4)], {}),
    ("pairwise_distance", [normal(3, 4), normal(3, 4)], {}),
    ("pairwise_distance", [normal(3, 4), normal(3, 4)], {"p": 3.0, "keepdim": True}),
    ("pairwise_distance", [normal(3, 4), normal(3, 4)], {"p": float("inf")}),
    ("instance_norm", [normal(2, 3, 4, 5)], {}),
    ("softmax", [normal(3, 4)], {"dim": 0}),
    ("log_softmax", [normal(3, 4)], {"dim": 1}),
]


@pytest.mark.parametrize(
    "name,arrays,options", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_function(name, arrays, options):
    ours, theirs = leaves(arrays)
    assert_same_results(
        getattr(F, name)(*ours, **options),
        getattr(torch.nn.functional, name)(*theirs, **options),
        ours,
        theirs,
        rtol=1e-4,
        atol=1e-5,
    )


def test_one_hot():
    index = np.array([[0, 2], [1, 1]])
    ours, theirs = holdfast.tensor(index), torch.from_numpy(index)
    assert_close(F.one_hot(ours), torch.nn.functional.one_hot(theirs))
    assert_close(F.one_hot(ours, 5), torch.nn.functional.one_hot(theirs, 5))
    with pytest.raises(RuntimeError, match="num_classes"):
        F.one_hot(ours, 0)


def test_softmax_dtype_and_implicit_dim():
    x = holdfast.ones(2, 3)
    assert F.softmax(x, 1, dtype=holdfast.float64).dtype == holdfast.float64
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        assert holdfast.allclose(F.softmax(x), F.softmax(x, 1))


def test_attention():
    query, key, value = normal(2, 5, 4), normal(2, 6, 4), normal(2, 6, 3)
    mask = rng.random((5, 6)) < 0.7
    mask[:, 0] = True
    scores = query @ key.transpose(0, 2, 1) / 2
    for use in (None, mask, np.where(mask, 0, -np.inf).astype("float32")):
        masked = scores
        if use is mask:
            masked = np.where(mask, scores, -np.inf)
        elif use is not None:
            masked = scores + use
        weights = np.exp(masked - masked.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        ours = F.scaled_dot_product_attention(
            *(holdfast.tensor(x) for x in (query, key, value)),
            attn_mask=None if use is None else holdfast.tensor(use),
        )
        np.testing.assert_allclose(ours.numpy(), weights @ value, rtol=1e-4, atol=1e-5)


def test_causal_attention_sees_only_the_past():
    query, key, value = (holdfast.tensor(normal(1, 4, 3)) for _ in range(3))
    out = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    changed = value.clone()
    changed[:, 3] = 100.0
    again = F.scaled_dot_product_attention(query, key, changed, is_causal=True)
    assert holdfast.equal(out[:, :3], again[:, :3])
    assert not holdfast.equal(out[:, 3], again[:, 3])


def test_a_choice_of_attention_changes_nothing():
    from holdfast.nn.attention import SDPBackend, sdpa_kernel

    x = holdfast.tensor(normal(1, 4, 3))
    for backends in (SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        with sdpa_kernel(backends):
            chosen = F.scaled_dot_product_attention(x, x, x)
        assert holdfast.equal(chosen, F.scaled_dot_product_attention(x, x, x))
    with pytest.raises(TypeError, match="SDPBackends, but got 'math'"):
        with sdpa_kernel("math"):
            pass


def test_gumbel_softmax():
    holdfast.manual_seed(0)
    logits = holdfast.tensor([[0.0, 2.0, -1.0]]).expand(4000, 3).contiguous()
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(np.unique(np.round(hard.numpy(), 5))) == {0.0, 1.0}
    shares = hard.mean(0)
    assert holdfast.allclose(shares, logits[0].softmax(0), atol=0.03)


def test_pool_and_pad_refusals():
    x = holdfast.ones(1, 1, 4, 4)
    with pytest.raises(RuntimeError, match="divisor must be not zero"):
        F.avg_pool2d(x, 2, divisor_override=0)
    with pytest.raises(NotImplementedError, match="nn.functional.no_such"):
        F.no_such
