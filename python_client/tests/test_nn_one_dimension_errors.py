# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of one dimension, which run as images of one row, and transposed
convolutions, which run as gradients, name themselves and the caller's shapes."""

import pytest

# (what is called, the whole message)
CASES = [
    (
        lambda t, F: F.conv1d(t.ones(2, 3, 8), t.ones(4, 2, 5)),
        "[conv1d] Given groups=1, weight of size [4, 2, 5], expected input[2, 3, 8] to "
        "have 2*1 channels, but got 3 channels instead. Got input=f32[2,3,8], "
        "weight=f32[4,2,5], stride=[1], padding=[0], dilation=[1], groups=1.",
    ),
    (
        lambda t, F: F.conv1d(t.ones(3, 8), t.ones(4, 2, 5)),
        "[conv1d] Given groups=1, weight of size [4, 2, 5], expected input[3, 8] to "
        "have 2*1 channels, but got 3 channels instead. Got input=f32[3,8], "
        "weight=f32[4,2,5], stride=[1], padding=[0], dilation=[1], groups=1.",
    ),
    (
        lambda t, F: t.nn.Conv1d(3, 4, 13, stride=2)(t.ones(2, 3, 8)),
        "[conv1d] Calculated padded input size per channel: (8). Kernel size: (13). "
        "Kernel size can't be greater than actual input size. Got input=f32[2,3,8], "
        "weight=f32[4,3,13], bias=f32[4], stride=[2], padding=[0], dilation=[1], "
        "groups=1.",
    ),
    (
        lambda t, F: t.conv1d(t.ones(2, 1, 1), t.ones(1, 1, 1), stride=-3),
        "[conv1d] non-positive stride is not supported. Got input=f32[2,1,1], "
        "weight=f32[1,1,1], stride=[-3], padding=[0], dilation=[1], groups=1.",
    ),
    (
        lambda t, F: F.conv_transpose1d(t.ones(2, 3, 8).double(), t.ones(3, 2, 5)),
        "[conv_transpose1d] expected input and weight to have the same dtype, but got: "
        "float64 != float32. Got input=f64[2,3,8], weight=f32[3,2,5], stride=[1], "
        "padding=[0], dilation=[1], groups=1.",
    ),
    (
        lambda t, F: F.conv_transpose2d(
            t.ones(1, 1, 8, 8), t.ones(1, 1, 2, 2).double()
        ),
        "[conv_transpose2d] expected input and weight to have the same dtype, but got: "
        "float32 != float64. Got input=f32[1,1,8,8], weight=f64[1,1,2,2], "
        "stride=[1,1], padding=[0,0], dilation=[1,1], groups=1.",
    ),
    (
        lambda t, F: F.max_pool1d(t.ones(2, 3, 8), 3, stride=0),
        "[max_pool1d] stride should be greater than zero, but got 0. Got "
        "input=f32[2,3,8], kernel_size=[3], stride=[0], padding=[0], dilation=[1], "
        "ceil_mode=False.",
    ),
    (
        lambda t, F: t.nn.AvgPool1d(9)(t.ones(3, 8)),
        "[avg_pool1d] Given input size: (3x8). Calculated output size: (3x0). Output "
        "size is too small. Got input=f32[3,8], kernel_size=[9], stride=[9], "
        "padding=[0], ceil_mode=False, count_include_pad=True, divisor_override=None.",
    ),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_errors(torch, number):
    call, message = CASES[number]
    with pytest.raises(RuntimeError) as caught:
        call(torch, torch.nn.functional)
    assert str(caught.value) == message
