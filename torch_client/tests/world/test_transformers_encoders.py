# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""transformers' encoders of text and its encoder-decoders."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

import transformers_encoders as models  # noqa: E402
from three_steps import compare  # noqa: E402

transformers.logging.set_verbosity_error()


@pytest.mark.parametrize("kind", models.ALL)
def test_training(device, kind):
    model = models.model_of(kind)
    compare(model, models.batch_of(kind, model), device)


@pytest.mark.parametrize("kind", ["bart", "led", "marian", "mt5", "pegasus", "t5"])
def test_generation_with_beams(device, kind):
    model = models.model_of(kind).eval()
    batch = models.batch_of(kind, model)
    del batch["labels"]
    found = []
    for place in ("cpu", device):
        model.to(place)
        there = {k: v.to(place) for k, v in batch.items()}
        found.append(
            model.generate(
                **there, num_beams=2, do_sample=False, max_new_tokens=8, min_length=8
            ).cpu()
        )
    assert torch.equal(*found)
