# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""transformers' models of images and of sound."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

import transformers_senses as models  # noqa: E402
from three_steps import compare  # noqa: E402

transformers.logging.set_verbosity_error()


@pytest.mark.parametrize("kind", models.ALL)
def test_training(device, kind):
    model = models.model_of(kind)
    double = kind in models.IMAGES
    compare(model, models.batch_of(kind, model), device, double=double)


def test_speech_to_tokens(device):
    model = models.model_of("whisper").eval()
    sound = models.batch_of("whisper", model)["input_features"]
    options = dict(do_sample=False, max_new_tokens=8)
    expected = model.generate(input_features=sound, **options)
    found = model.to(device).generate(input_features=sound.to(device), **options)
    assert torch.equal(found.cpu(), expected)
