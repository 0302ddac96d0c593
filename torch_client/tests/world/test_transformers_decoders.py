# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""transformers' decoders: trained, and `generate` with a cache."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from three_steps import compare, without_dropout  # noqa: E402
from transformers_decoders import ALL  # noqa: E402

transformers.logging.set_verbosity_error()

# Generation is shown with one of each kind of cache and of positions.
GENERATE = (
    "bloom falcon gemma2 gemma3_text gpt2 gpt_neox gptj llama lfm2 mamba mamba2 "
    "mixtral mistral mpt opt phi3 qwen2 qwen2_moe qwen3 recurrent_gemma starcoder2"
).split()


def model_of(kind, **more):
    config = transformers.AutoConfig.for_model(kind, **ALL[kind], **more)
    return transformers.AutoModelForCausalLM.from_config(without_dropout(config))


@pytest.mark.parametrize("kind", ALL)
def test_training(device, kind):
    tokens = torch.randint(3, 64, (2, 16))
    compare(model_of(kind), {"input_ids": tokens, "labels": tokens}, device)


@pytest.mark.parametrize("kind", GENERATE)
def test_greedy_generation(device, kind):
    model = model_of(kind).eval()
    tokens = torch.randint(3, 64, (2, 7))
    mask = torch.ones_like(tokens)
    mask[1, :3] = 0  # a shorter prompt, padded on the left
    options = dict(max_new_tokens=12, min_new_tokens=12, do_sample=False)
    expected = model.generate(tokens, attention_mask=mask, **options)
    model.to(device)
    found = model.generate(tokens.to(device), attention_mask=mask.to(device), **options)
    assert found.device.type == device and torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mamba"])
def test_sampled_generation(device, kind):
    model = model_of(kind).eval().to(device)
    tokens = torch.randint(3, 64, (2, 7)).to(device)
    options = dict(max_new_tokens=8, do_sample=True, top_k=20, top_p=0.9)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(model.generate(tokens, temperature=0.8, **options).cpu())
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert torch.equal(drawn[0][:, :7], tokens.cpu())


def test_beams(device):
    model = model_of("llama").eval()
    tokens = torch.randint(3, 64, (2, 7))
    options = dict(max_new_tokens=8, num_beams=3, do_sample=False)
    expected = model.generate(tokens, **options)
    found = model.to(device).generate(tokens.to(device), **options)
    assert torch.equal(found.cpu(), expected)
