# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Masks on a daemon with several GPUs (server/fake_device with the CUDA kernels)."""

import pytest

import holdfast

FAKE_GPU = {"HOLDFAST_FAKE_KERNELS": "cuda"}


@pytest.fixture
def torch(gpu_session):
    holdfast.set_default_session(gpu_session)
    return holdfast


def test_counts_of_masks_stay_with_their_device(torch):
    """The size of the result is known before the kernel runs, which may be later:
    another device's mask, counted in between, is not mixed up with it."""
    data = torch.arange(4096.0)
    few, many = data % 512 == 0, data % 2 == 0
    on = [
        (data.to(f"cuda:{i}"), mask.to(f"cuda:{i}"))
        for i, mask in enumerate((few, many))
    ]
    for _ in range(40):
        results = [x[mask] for x, mask in on]
        places = [mask.nonzero() for _, mask in on]
        for found, place, mask in zip(results, places, (few, many)):
            assert found.tolist() == data[mask].tolist()
            assert place.tolist() == mask.nonzero().tolist()
