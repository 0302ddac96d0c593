# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.nn's transformer layers when they are evaluated: fused operators."""

import copy

import pytest
import torch


def pair(module, device):
    torch.manual_seed(0)
    model = module().eval()
    return model, copy.deepcopy(model).to(device)


def masks(device):
    padding = torch.zeros(2, 5, dtype=torch.bool, device=device)
    padding[1, 3:] = True
    source = torch.ones(5, 5, dtype=torch.bool, device=device).triu(1)
    return {
        "none": {},
        "padding": {"src_key_padding_mask": padding},
        "source": {"src_mask": source},
    }


@pytest.mark.parametrize("mask", ["none", "padding", "source"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(device, mask, norm_first, activation):
    def layer():
        return torch.nn.TransformerEncoderLayer(
            8, 2, 16, activation=activation, norm_first=norm_first, batch_first=True
        )

    cpu, ours = pair(layer, device)
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        expected = cpu(x, **masks("cpu")[mask])
        found = ours(x.to(device), **masks(device)[mask])
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_multi_head_attention(device, average, padded):
    def attention():
        return torch.nn.MultiheadAttention(8, 2, batch_first=True)

    cpu, ours = pair(attention, device)
    x = torch.randn(2, 5, 8)

    def run(module, x, device):
        mask = masks(device)["padding"]["src_key_padding_mask"] if padded else None
        with torch.no_grad():
            return module(x, x, x, key_padding_mask=mask, average_attn_weights=average)

    found, expected = run(ours, x.to(device), device), run(cpu, x, "cpu")
    for one, other in zip(found, expected):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-5)
