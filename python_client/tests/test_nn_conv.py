# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Layers of convolution, pooling, padding and images against PyTorch's: text,
state_dict, output, gradients."""

import numpy as np
import pytest

import holdfast
from holdfast import nn
from torch_peer import assert_close, assert_same_results, leaves, torch

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

rng = np.random.default_rng(4)


def normal(*shape):
    return rng.standard_normal(shape).astype("float32")


LAYERS = [
    (lambda nn: nn.Conv1d(4, 6, 3, 2, 1, groups=2), (2, 4, 9)),
    (lambda nn: nn.Conv1d(2, 3, 4, padding="same", padding_mode="circular"), (2, 2, 9)),
    (lambda nn: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), (2, 2, 5, 6)),
    (
        lambda nn: nn.Conv2d(2, 3, 4, padding="same", padding_mode="replicate"),
        (2, 5, 6),
    ),
    (lambda nn: nn.Conv3d(2, 3, 2, bias=False, dilation=2), (2, 2, 4, 5, 6)),
    (
        lambda nn: nn.Conv3d(1, 2, 3, padding=1, padding_mode="circular"),
        (1, 1, 4, 4, 4),
    ),
    (lambda nn: nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), (2, 3, 5)),
    (lambda nn: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, False), (2, 4, 5, 4)),
    (lambda nn: nn.ConvTranspose2d(3, 4, 3, dilation=2), (3, 5, 4)),
    (lambda nn: nn.ConvTranspose3d(2, 3, 2, stride=2), (1, 2, 3, 2, 3)),
    (lambda nn: nn.MaxPool1d(3, 2, 1), (2, 3, 9)),
    (lambda nn: nn.MaxPool3d((2, 3, 2)), (2, 3, 4, 6, 5)),
    (lambda nn: nn.AvgPool1d(3, 2, 1, True, False), (2, 3, 8)),
    (lambda nn: nn.AvgPool3d(2, divisor_override=3), (3, 4, 6, 5)),
    (lambda nn: nn.LPPool1d(2, 3), (2, 3, 9)),
    (lambda nn: nn.LPPool2d(2.0, (2, 3), 2), (2, 3, 6, 9)),
    (lambda nn: nn.AdaptiveAvgPool1d(4), (2, 3, 9)),
    (lambda nn: nn.AdaptiveAvgPool2d((3, None)), (2, 3, 7, 5)),
    (lambda nn: nn.AdaptiveAvgPool3d((2, 3, 4)), (2, 3, 5, 6, 7)),
    (lambda nn: nn.AdaptiveMaxPool1d(4), (2, 3, 9)),
    (lambda nn: nn.AdaptiveMaxPool2d((3, 4)), (2, 3, 7, 5)),
    (lambda nn: nn.AdaptiveMaxPool3d(2), (2, 3, 5, 6, 7)),
    (lambda nn: nn.ConstantPad1d((1, 2), 3.5), (2, 3, 4)),
    (lambda nn: nn.ConstantPad2d(1, 3.5), (2, 3, 4, 5)),
    (lambda nn: nn.ConstantPad3d((1, 2, 0, 1, -1, 2), 3.5), (2, 3, 4, 5, 6)),
    (lambda nn: nn.ZeroPad2d((1, 0, 2, 1)), (2, 3, 4, 5)),
    (lambda nn: nn.ReflectionPad1d(2), (2, 3, 4)),
    (lambda nn: nn.ReflectionPad2d((1, 2, 3, 0)), (2, 3, 4, 5)),
    (lambda nn: nn.ReflectionPad3d(1), (1, 2, 3, 4, 5)),
    (lambda nn: nn.ReplicationPad1d((1, 2)), (2, 3, 4)),
    (lambda nn: nn.ReplicationPad2d(2), (3, 4, 5)),
    (lambda nn: nn.ReplicationPad3d(1), (2, 3, 4, 5)),
    (lambda nn: nn.Unfold((2, 3), padding=1), (2, 3, 5, 6)),
    (lambda nn: nn.Fold((5, 6), 2, stride=2, padding=1), (2, 12, 12)),
    (lambda nn: nn.PixelShuffle(2), (2, 8, 3, 4)),
    (lambda nn: nn.PixelUnshuffle(2), (2, 2, 4, 6)),
    (lambda nn: nn.Upsample(scale_factor=2), (2, 2, 4, 6)),
    (lambda nn: nn.Upsample((5, 7), mode="bilinear"), (2, 2, 4, 6)),
    (lambda nn: nn.Upsample(scale_factor=1.5, mode="trilinear"), (1, 2, 4, 6, 2)),
    (lambda nn: nn.UpsamplingNearest2d(scale_factor=2), (2, 2, 4, 6)),
    (lambda nn: nn.UpsamplingBilinear2d(size=(3, 9)), (2, 2, 4, 6)),
    (lambda nn: nn.LocalResponseNorm(3, alpha=0.1), (2, 5, 4, 6)),
]


@pytest.mark.parametrize("make,shape", LAYERS, ids=lambda v: _id(v))
def test_layer(make, shape):
    theirs, ours = make(torch.nn), make(nn)
    assert repr(ours) == repr(theirs)
    state = {k: holdfast.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    our_inputs, their_inputs = leaves([normal(*shape)])
    assert_same_results(
        ours(*our_inputs),
        theirs(*their_inputs),
        [*our_inputs, *ours.parameters()],
        [*their_inputs, *theirs.parameters()],
        rtol=1e-4,
        atol=2e-5,
    )


def _id(value):
    return repr(value(torch.nn)) if callable(value) else str(value)


def test_conv_transpose_output_size():
    theirs = torch.nn.ConvTranspose2d(2, 3, 3, stride=2)
    ours = nn.ConvTranspose2d(2, 3, 3, stride=2)
    ours.load_state_dict(
        {k: holdfast.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    )
    x = normal(1, 2, 4, 4)
    for size in ((9, 10), (1, 3, 10, 9)):
        assert_close(
            ours(holdfast.tensor(x), size),
            theirs(torch.from_numpy(x), size),
            rtol=1e-4,
            atol=1e-5,
        )
    with pytest.raises(ValueError, match="valid sizes range from"):
        ours(holdfast.tensor(x), (20, 20))


def test_layers_newer_than_the_peer():
    x = holdfast.tensor(normal(1, 2, 3, 4))
    assert repr(nn.ChannelShuffle(2)) == "ChannelShuffle(groups=2)"
    assert nn.ChannelShuffle(2)(x).shape == (1, 2, 3, 4)
    assert repr(nn.CircularPad2d(1)) == "CircularPad2d((1, 1, 1, 1))"
    assert nn.CircularPad2d(1)(x)[0, 0, 0, 0].item() == x[0, 0, 2, 3].item()
    assert nn.ZeroPad1d((1, 0))(x)[0, 0, 0, 0].item() == 0
    assert nn.LPPool3d(2, 1)(x).shape == (1, 2, 3, 4)


def test_unpool_layer():
    x = holdfast.tensor(normal(1, 2, 6, 6))
    values, at = nn.MaxPool2d(2, return_indices=True)(x)
    layer = nn.MaxUnpool2d(2)
    assert (
        repr(layer) == "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))"
    )
    again, where = nn.MaxPool2d(2, return_indices=True)(layer(values, at).abs())
    assert holdfast.equal(again, values.abs()) and holdfast.equal(where, at)


def test_convolution_with_a_weight_of_ones_own():
    """As subclasses of programs do: low-rank adapters, standardised weights."""

    class Standardised(nn.Conv2d):
        def forward(self, input):
            weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return self._conv_forward(input, weight, self.bias)

    x = holdfast.tensor(normal(2, 3, 6, 6))
    for mode in ("zeros", "circular"):
        layer = Standardised(3, 4, 3, padding=(1, 2), padding_mode=mode)
        plain = nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode=mode)
        plain.load_state_dict(layer.state_dict())
        with holdfast.no_grad():
            plain.weight -= plain.weight.mean((1, 2, 3), keepdim=True)
        assert holdfast.allclose(layer(x), plain(x), atol=1e-6)
        assert list(layer._reversed_padding_repeated_twice) == [2, 2, 1, 1]
