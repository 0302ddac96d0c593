# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Recurrent layers, attention, transformers and ctc_loss against PyTorch's."""

import numpy as np
import pytest

import holdfast
import holdfast.nn.functional as F
from holdfast import _C, _stats, nn
from test_nn_layers import both
from torch_peer import assert_close, assert_same_results, leaves, torch

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

RECURRENT = [
    lambda nn: nn.RNN(3, 5),
    lambda nn: nn.RNN(3, 5, nonlinearity="relu", bias=False),
    lambda nn: nn.LSTM(3, 5),
    lambda nn: nn.LSTM(3, 5, 2, bidirectional=True),
    lambda nn: nn.LSTM(3, 5, 2, batch_first=True),
    lambda nn: nn.GRU(3, 5),
    lambda nn: nn.GRU(3, 5, 2, bidirectional=True, batch_first=True),
]
PROJECTED = [
    lambda nn: nn.LSTM(3, 5, proj_size=2),
    lambda nn: nn.LSTM(3, 5, 2, bidirectional=True, bias=False, proj_size=4),
]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def flat(nn, output, state):
    """One tensor of everything that a layer returns."""
    states = state if isinstance(state, tuple) else (state,)
    lib = torch if nn is torch.nn else holdfast
    return lib.cat([x.reshape(-1) for x in (output, *states)])


def compare(ours, theirs, run, arrays, **tolerance):
    """`run(nn, layer, *inputs)` on both gives one tensor."""
    our_inputs, their_inputs = leaves(arrays)
    assert_same_results(
        run(nn, ours, *our_inputs),
        run(torch.nn, theirs, *their_inputs),
        [*our_inputs, *ours.parameters()],
        [*their_inputs, *theirs.parameters()],
        rtol=tolerance.get("rtol", 1e-3),
        atol=tolerance.get("atol", 2e-5),
    )


@pytest.mark.parametrize("make", RECURRENT + PROJECTED)
@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 3)])
def test_recurrent_layer(make, shape):
    ours, theirs = both(make)

    def run(nn, layer, x, *state):
        return flat(nn, *layer(x))

    compare(ours, theirs, run, [normal(*shape)])


@pytest.mark.parametrize("make", RECURRENT[:-2:2] + PROJECTED)
def test_recurrent_layer_with_a_state(make):
    ours, theirs = both(make)
    count = len(ours._suffixes)
    lstm = ours.mode == "LSTM"
    sizes = [ours.proj_size or 5, 5][: 1 + lstm]
    states = [normal(count, 2, n, seed=i) for i, n in enumerate(sizes)]

    def run(nn, layer, x, *state):
        return flat(nn, *layer(x, state if lstm else state[0]))

    shape = (2, 4, 3) if ours.batch_first else (4, 2, 3)
    compare(ours, theirs, run, [normal(*shape), *states])


@pytest.mark.parametrize("make", RECURRENT + PROJECTED)
@pytest.mark.parametrize("sort", [True, False])
def test_packed_sequences(make, sort):
    ours, theirs = both(make)
    lengths = [4, 3, 3, 1] if sort else [3, 1, 4, 3]
    first = ours.batch_first

    def run(nn, layer, x):
        rnn = nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, lengths, first, enforce_sorted=sort)
        output, state = layer(packed)
        padded, sizes = rnn.pad_packed_sequence(output, first, 0.5)
        assert sizes.tolist() == lengths
        return flat(nn, padded, state)

    compare(ours, theirs, run, [normal(*((4, 5, 3) if first else (5, 4, 3)))])


CELLS = [
    lambda nn: nn.RNNCell(3, 5),
    lambda nn: nn.RNNCell(3, 5, nonlinearity="relu"),
    lambda nn: nn.GRUCell(3, 5, bias=False),
]


@pytest.mark.parametrize("make", CELLS)
def test_cell(make):
    compare(
        *both(make),
        lambda nn, cell, x, h: cell(x, cell(x, h)) + cell(x),
        [normal(2, 3), normal(2, 5)],
    )


def test_lstm_cell():
    compare(
        *both(lambda nn: nn.LSTMCell(3, 5)),
        lambda nn, cell, x, h, c: flat(nn, *cell(x, cell(x, (h, c)))),
        [normal(2, 3), normal(2, 5), normal(2, 5, seed=1)],
    )


def test_dropout_between_layers():
    layer = nn.LSTM(3, 5, 2, dropout=0.5)
    x = holdfast.randn(4, 2, 3)
    assert not holdfast.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert holdfast.equal(layer(x)[0], layer(x)[0])


def test_sequence_utilities():
    rnn, peer = nn.utils.rnn, torch.nn.utils.rnn
    arrays = [normal(3, 2), normal(1, 2), normal(4, 2)]
    ours, theirs = leaves(arrays)
    for first in (False, True):
        assert_close(
            rnn.pad_sequence(ours, first, 7.0), peer.pad_sequence(theirs, first, 7.0)
        )
    packed = rnn.pack_sequence(ours, enforce_sorted=False)
    expected = peer.pack_sequence(theirs, enforce_sorted=False)
    for ours_part, theirs_part in zip(packed, expected):
        assert_close(ours_part, theirs_part)
    for back, array in zip(rnn.unpack_sequence(packed), arrays):
        assert np.array_equal(back.detach().numpy(), array)
    padded, lengths = rnn.pad_packed_sequence(packed, total_length=6)
    assert tuple(padded.shape) == (6, 3, 2) and lengths.tolist() == [3, 1, 4]


ATTENTION = [
    {},
    {"bias": False},
    {"batch_first": True},
    {"kdim": 3, "vdim": 5},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
]


@pytest.mark.parametrize("options", ATTENTION, ids=str)
def test_multihead_attention(options):
    ours, theirs = both(lambda nn: nn.MultiheadAttention(4, 2, **options))
    kdim, vdim = options.get("kdim", 4), options.get("vdim", 4)
    arrays = [normal(3, 2, 4), normal(5, 2, kdim), normal(5, 2, vdim)]
    if options.get("batch_first"):
        arrays = [a.swapaxes(0, 1).copy() for a in arrays]
    padding = np.array([[0, 0, 1, 0, 0], [1, 0, 0, 0, 1]], bool)
    mask = np.triu(np.ones((3, 5), bool), 3)

    def run(nn, layer, *x):
        lib = torch if nn is torch.nn else holdfast
        output, weights = layer(
            *x,
            key_padding_mask=lib.tensor(padding),
            attn_mask=lib.tensor(mask),
        )
        return flat(nn, output, weights)

    compare(ours, theirs, run, arrays)


def test_self_attention():
    compare(
        *both(lambda nn: nn.MultiheadAttention(4, 2)),
        lambda nn, layer, x: layer(x, x, x, need_weights=False)[0],
        [normal(3, 2, 4)],
    )


TRANSFORMERS = [
    (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, 0.0), 1),
    (
        lambda nn: nn.TransformerEncoderLayer(
            4, 2, 8, 0.0, "gelu", norm_first=True, batch_first=True
        ),
        1,
    ),
    (lambda nn: nn.TransformerDecoderLayer(4, 2, 8, 0.0), 2),
    (lambda nn: nn.TransformerDecoderLayer(4, 2, 8, 0.0, norm_first=True), 2),
    (
        lambda nn: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2, nn.LayerNorm(4)
        ),
        1,
    ),
    (lambda nn: nn.Transformer(4, 2, 1, 1, 8, 0.0), 2),
]


@pytest.mark.parametrize("make,count", TRANSFORMERS)
def test_transformer(make, count):
    theirs = make(torch.nn)
    ours = make(nn)
    state = {k: holdfast.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    assert list(state) == list(ours.state_dict())
    ours.load_state_dict(state)
    compare(
        ours,
        theirs,
        lambda nn, layer, *x: layer(*x),
        [normal(3, 2, 4), normal(5, 2, 4)][:count],
    )


def test_causal_mask():
    ours = nn.Transformer.generate_square_subsequent_mask(4)
    theirs = torch.nn.Transformer.generate_square_subsequent_mask(4)
    assert_close(ours, theirs)


def test_grouped_heads():
    q, k = holdfast.randn(2, 4, 3, 5), holdfast.randn(2, 2, 6, 5)
    ours = F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    wide = holdfast.stack([k, k], 2).reshape(2, 4, 6, 5)
    expected = F.scaled_dot_product_attention(q, wide, wide)
    assert holdfast.allclose(ours, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("zero", [False, True])
def test_ctc_loss(reduction, zero):
    rng = np.random.default_rng(3)
    scores = normal(20, 5, 6)
    targets = rng.integers(1, 6, (5, 9))
    # A target of 6 does not fit into 3 steps.
    steps, lengths = [20, 15, 3, 1, 18], [9, 4, 6 if zero else 2, 0, 1]

    def run(nn, scores, targets):
        functional = nn.functional
        return functional.ctc_loss(
            functional.log_softmax(scores, 2),
            targets,
            steps,
            lengths,
            reduction=reduction,
            zero_infinity=zero,
        )

    def both_forms(nn, layer, scores):
        lib = torch if nn is torch.nn else holdfast
        return run(nn, scores, lib.tensor(targets))

    ours, theirs = nn.Module(), torch.nn.Module()
    compare(ours, theirs, both_forms, [scores])


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda: nn.LSTM(3, 5)(holdfast.ones(2, 2, 4)), RuntimeError, "input_size"),
        (
            lambda: nn.GRU(3, 5)(holdfast.ones(2, 2, 3), holdfast.ones(1, 3, 5)),
            RuntimeError,
            "Expected hidden size",
        ),
        (lambda: nn.RNN(3, 0), ValueError, "greater than zero"),
        (lambda: nn.MultiheadAttention(5, 2), AssertionError, "divisible"),
        (
            lambda: nn.utils.rnn.pack_padded_sequence(holdfast.ones(3, 2, 1), [1, 3]),
            RuntimeError,
            "sorted in decreasing order",
        ),
        (
            lambda: nn.utils.rnn.pack_padded_sequence(holdfast.ones(3, 2, 1), [3, 0]),
            RuntimeError,
            "greater than 0",
        ),
        (
            lambda: F.ctc_loss(
                holdfast.ones(3, 1, 4), holdfast.tensor([[1, 5]]), [3], [2]
            ).item(),
            RuntimeError,
            "targets in",
        ),
        (
            lambda: F.ctc_loss(
                holdfast.ones(3, 1, 4), holdfast.tensor([[1, 2]]), [4], [2]
            ).item(),
            RuntimeError,
            "input_lengths in",
        ),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_wrong_projections():
    for size, text in ((5, "smaller than hidden_size"), (-1, "positive integer")):
        with pytest.raises(ValueError, match=text):
            nn.LSTM(3, 5, proj_size=size)
    with pytest.raises(ValueError, match="only supported for LSTM"):
        nn.GRU(3, 5, proj_size=2)
    assert "proj_size=2" in repr(nn.LSTM(3, 5, proj_size=2))


# ---- what a layer keeps for its gradient


def bytes_in_use(session):
    holdfast.synchronize()
    sessions = _stats.parse(session._stats())["sessions"]
    return max(s["bytes_in_use"] for s in sessions)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_what_is_kept_goes_with_the_graph(kind):
    layer = getattr(nn, kind)(16, 64)
    x = holdfast.ones(20, 8, 16)
    rows, row = 20 * 8, 64 * 4
    saved = {"RNN": 0, "LSTM": 5, "GRU": 4}[kind] * rows * row

    def held(run):
        """By a call's results, and when they are gone."""
        before = bytes_in_use(x._session)
        results = run()
        with_results = bytes_in_use(x._session) - before
        del results
        return with_results, bytes_in_use(x._session) - before

    output = rows * row
    kept, left = held(lambda: layer(x))
    assert kept >= output + saved
    assert left == 0
    with holdfast.no_grad():
        unkept, left = held(lambda: layer(x))
    assert left == 0
    frozen = getattr(nn, kind)(16, 64).requires_grad_(False)
    assert held(lambda: frozen(x)) == (unkept, 0)
    assert kept - unkept >= saved
    assert unkept < output + 64 * row  # states and little else


@pytest.mark.parametrize("make", RECURRENT)
def test_a_kept_graph_gives_its_gradients_again(make):
    layer = make(nn)
    x = holdfast.tensor(normal(4, 2, 3)).requires_grad_()
    loss = flat(nn, *layer(x)).pow(2).sum()
    tensors = [x, *layer.parameters()]
    first = holdfast.autograd.grad(loss, tensors, retain_graph=True)
    for one, other in zip(first, holdfast.autograd.grad(loss, tensors), strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("make", RECURRENT[:-2:2])
@pytest.mark.parametrize("wanted", ["input", "weight_ih_l0", "bias_hh_l0"])
def test_one_gradient_alone(make, wanted):
    """Those that nobody asks for are not computed."""
    whole, part = make(nn), make(nn)
    part.load_state_dict(whole.state_dict())
    part.requires_grad_(False)
    x = holdfast.tensor(normal(4, 2, 3)).requires_grad_()
    y = x.detach().clone()
    leaf = y if wanted == "input" else getattr(part, wanted, None)
    if leaf is None:
        return  # without biases
    leaf.requires_grad_()
    flat(nn, *whole(x)).sum().backward()
    flat(nn, *part(y)).sum().backward()
    right = x if wanted == "input" else getattr(whole, wanted)
    np.testing.assert_allclose(
        leaf.grad.numpy(), right.grad.numpy(), rtol=1e-5, atol=1e-6
    )


def test_a_reserve_of_another_layer_is_refused():
    x, h = holdfast.ones(4, 2, 3), holdfast.zeros(2, 5)
    layer = (x, None, h, h, holdfast.ones(20, 3), holdfast.ones(20, 5), None, None)
    output, _, _, reserve = _C.ops.rnn_layer(*layer, "lstm", False, True)
    assert reserve.shape == (4 * 2 * 25,)
    for wrong in (reserve[:-2], holdfast.zeros(0), holdfast.zeros(202)):
        grads = _C.ops.rnn_layer_backward(
            output, None, None, *layer, output, wrong, "lstm", False, 3
        )
        with pytest.raises(RuntimeError, match="reserve must have the 200 elements"):
            grads[0].tolist()
