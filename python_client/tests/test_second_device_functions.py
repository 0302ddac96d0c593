# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Functions whose op cases (tests/test_second_device.py) do not show all that they do:
on the second of a daemon's GPUs (two of server/fake_device) they give what they give on
"cpu", there."""

import numpy as np
import pytest

import holdfast
from holdfast.vision import transforms as T
from holdfast.vision.transforms import functional as F

BYTES = np.random.RandomState(9).randint(0, 256, (2, 3, 24, 20)).astype(np.uint8)
MATRICES = np.array([[[2.0, 1], [1, 3]], [[1, 0], [0, -1]], [[0, 0], [0, 0]]])

CALLS = [
    lambda t, x: F.invert(x),
    lambda t, x: F.posterize(x, 2),
    lambda t, x: F.solarize(x, 77),
    lambda t, x: F.autocontrast(x),
    lambda t, x: F.equalize(x),
    lambda t, x: F.adjust_sharpness(x, 1.6),
    lambda t, x: F.adjust_hue(x, 0.2),
    lambda t, x: F.gaussian_blur(x, 3),
    lambda t, x: F.pad(x, 2, padding_mode="reflect"),
    lambda t, x: F.rotate(x, 30.0, fill=[5]),
    lambda t, x: F.affine(x, 10.0, (1, 2), 1.2, (3.0, 4.0)),
    lambda t, x: F.normalize(x.float(), (1.0, 2.0, 3.0), (2.0, 3.0, 4.0)),
    lambda t, x: T.RandomErasing(1.0)(x),
    lambda t, x: T.AutoAugment()(x),
    lambda t, x: T.RandAugment(4)(x),
    lambda t, x: T.TrivialAugmentWide()(x),
    lambda t, x: T.AugMix()(x),
    lambda t, x: x[0, 0].apply_(lambda v: 255 - v),
    lambda t, x: x[0, 0].map_(x[0, 1], max),
    lambda t, x: t.igamma(x[0, 0].float() / 50, 2.5),
    lambda t, x: t.igammac(x[0].float() / 50, x[:, :1].float() / 40),
    lambda t, x: t.cdist(x[0, 0], x[0, 1]),
    lambda t, x: t.linalg.inv_ex(matrices(t, x)).info,
    lambda t, x: t.linalg.lu_factor_ex(matrices(t, x)).info,
    lambda t, x: t.linalg.cholesky_ex(matrices(t, x)).L,
    lambda t, x: t.linalg.cholesky_ex(matrices(t, x)).info,
    lambda t, x: t.linalg.cholesky_ex(matrices(t, x)[:1]).info,
    lambda t, x: t.linalg.solve_ex(matrices(t, x), matrices(t, x)[:, 0]).result,
]


def matrices(t, like):
    return t.tensor(MATRICES, device=like.device)


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_on_the_second_device(gpu_session, number):
    holdfast.set_default_session(gpu_session)
    results = []
    for device in ("cpu", "cuda:1"):
        holdfast.manual_seed(number)
        pixels = holdfast.tensor(BYTES, device=device)
        result = CALLS[number](holdfast, pixels)
        assert str(result.device) == device
        results.append(result.cpu().numpy())
    np.testing.assert_array_equal(*results)
