# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""vision.transforms: tones, and augmentations that draw what they do, by Pillow."""

import math

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")
from PIL import ImageEnhance, ImageOps  # noqa: E402

from holdfast.vision import transforms as T  # noqa: E402
from holdfast.vision.transforms import functional as F  # noqa: E402

PIXELS = np.random.RandomState(4).randint(20, 200, (14, 11, 3)).astype(np.uint8)
NARROW = PIXELS // 40 + 100  # five values
FLAT = np.full_like(PIXELS, 9)
TONES = [
    ("invert", (), ImageOps.invert),
    ("posterize", (3,), lambda i: ImageOps.posterize(i, 3)),
    ("posterize", (1,), lambda i: ImageOps.posterize(i, 1)),
    ("posterize", (8,), lambda i: i),
    ("solarize", (100,), lambda i: ImageOps.solarize(i, 100)),
    ("solarize", (70.5,), lambda i: ImageOps.solarize(i, 70.5)),
    ("autocontrast", (), ImageOps.autocontrast),
    ("equalize", (), ImageOps.equalize),
    ("adjust_sharpness", (0.0,), lambda i: ImageEnhance.Sharpness(i).enhance(0.0)),
    ("adjust_sharpness", (1.7,), lambda i: ImageEnhance.Sharpness(i).enhance(1.7)),
]


def as_tensor(torch, pixels):
    return torch.from_numpy(pixels.transpose(2, 0, 1).copy())


@pytest.mark.parametrize("name, args, of_pillow", TONES)
def test_tones(torch, name, args, of_pillow):
    function = getattr(F, name)
    # Pillow rounds what it stretches and blurs in other places.
    tolerance = 1 if name in ("autocontrast", "adjust_sharpness") else 0
    for pixels in (PIXELS, NARROW, FLAT, PIXELS[:2], PIXELS[:, :1]):
        image = Image.fromarray(pixels)
        expected = np.asarray(of_pillow(image)).astype(int)
        assert function(image, *args) == of_pillow(image)
        got = function(as_tensor(torch, pixels), *args)
        assert got.dtype == torch.uint8
        difference = np.abs(got.numpy().transpose(1, 2, 0) - expected)
        if name == "adjust_sharpness" and min(pixels.shape[:2]) <= 2:
            expected = pixels  # as torchvision has it
            difference = np.abs(got.numpy().transpose(1, 2, 0) - expected)
        assert difference.max() <= tolerance
    grey = as_tensor(torch, PIXELS)[:1]
    batch = torch.stack([as_tensor(torch, p) for p in (PIXELS, NARROW, FLAT)])
    assert function(grey, *args).shape == grey.shape
    for one, alone in zip(function(batch, *args), batch, strict=True):
        assert one.tolist() == function(alone, *args).tolist()


def test_tones_of_floats(torch):
    x = torch.rand(2, 3, 6, 5)
    np.testing.assert_array_equal(F.invert(x).numpy(), 1 - x.numpy())
    low, high = (f(x.numpy(), (-2, -1), keepdims=True) for f in (np.amin, np.amax))
    expected = (x.numpy() - low) / (high - low)
    np.testing.assert_allclose(F.autocontrast(x).numpy(), expected, atol=1e-6)
    expected = np.where(x.numpy() >= 0.3, 1 - x.numpy(), x.numpy())
    np.testing.assert_array_equal(F.solarize(x, 0.3).numpy(), expected)
    sharp = F.adjust_sharpness(x, 1.0)
    np.testing.assert_allclose(sharp.numpy(), x.numpy(), atol=1e-6)
    smooth = F.adjust_sharpness(x, 0.0).numpy()
    around = x.numpy()[0, 1, 1:4, 2:5]
    middle = (around.sum() + 4 * around[1, 1]) / 13
    np.testing.assert_allclose(smooth[0, 1, 2, 3], middle, rtol=1e-5)
    assert (smooth[..., 0] == x.numpy()[..., 0]).all()


def test_probabilities(torch):
    square = np.random.RandomState(6).randint(0, 256, (24, 24, 3)).astype(np.uint8)
    image = Image.fromarray(square)
    for kind, args, function in (
        (T.RandomInvert, (), F.invert),
        (T.RandomPosterize, (2,), F.posterize),
        (T.RandomSolarize, (77,), F.solarize),
        (T.RandomAdjustSharpness, (3,), F.adjust_sharpness),
        (T.RandomAutocontrast, (), F.autocontrast),
        (T.RandomEqualize, (), F.equalize),
    ):
        assert kind(*args, p=0)(image) is image
        assert kind(*args, p=1)(image) == function(image, *args)
        torch.manual_seed(1)
        changed = sum(kind(*args, p=0.25)(image) is not image for _ in range(200))
        assert 25 < changed < 75


ERRORS = [
    (lambda t: F.posterize(t, 9), ValueError, "Got 9"),
    (lambda t: F.posterize(t.float(), 3), TypeError, "uint8.*float32"),
    (lambda t: F.equalize(t.float()), TypeError, "uint8.*float32"),
    (lambda t: F.solarize(t, 256), TypeError, "255.* 256"),
    (lambda t: F.invert(t[0]), TypeError, "3 dimensions, but found 2"),
    (lambda t: F.invert(t[:2]), TypeError, "found 2"),
    (lambda t: F.adjust_sharpness(t, -1), ValueError, "-1"),
    (lambda t: T.AutoAugment("cifar10"), ValueError, "policy cifar10"),
    (lambda t: T.AugMix(severity=11), ValueError, "Got 11"),
    (lambda t: T.RandAugment(interpolation="x"), TypeError, "'x'"),
    (lambda t: T.RandAugment()(3), TypeError, "<class 'int'>"),
]


@pytest.mark.parametrize("call, kind, message", ERRORS)
def test_errors_name_the_values(torch, call, kind, message):
    with pytest.raises(kind, match=message):
        call(as_tensor(torch, PIXELS))


def test_policies():
    counts = {}
    for policy in T.AutoAugmentPolicy:
        table = T.AutoAugment(policy).policies
        assert len(table) == 25
        space = T.AutoAugment(policy)._augmentation_space(10, (32, 32))
        for name, p, place in (change for pair in table for change in pair):
            assert 0 <= p <= 1 and name in space
            assert (place is None) == (space[name][0].ndim == 0)
            assert place is None or 0 <= place < 10
            counts[policy, name] = counts.get((policy, name), 0) + 1
    # What the paper says of them: geometry for numbers, colours for photographs.
    kinds = T.AutoAugmentPolicy
    assert counts[kinds.SVHN, "Invert"] == 12
    assert counts[kinds.IMAGENET, "Equalize"] == 17
    assert (kinds.IMAGENET, "ShearY") not in counts
    first = (("Invert", 0.1, None), ("Contrast", 0.2, 6))
    assert T.AutoAugment(kinds.CIFAR10).policies[0] == first


def test_magnitudes():
    papers = T.RandAugment()._augmentation_space(31, (331, 662))
    assert len(papers) == 14
    for name, most in (
        ("ShearX", 0.3),
        ("TranslateX", 300),
        ("TranslateY", 150),
        ("Rotate", 30),
        ("Sharpness", 0.9),
    ):
        magnitudes, signed = papers[name]
        np.testing.assert_allclose(magnitudes, np.linspace(0, most, 31), rtol=1e-6)
        assert signed
    assert papers["Posterize"][0].tolist() == [
        8 - round(i / 7.5) for i in range(31)  # from 8 bits to 4
    ]
    assert papers["Solarize"][0][[0, -1]].tolist() == [255, 0]
    wide = T.TrivialAugmentWide()._augmentation_space(31)
    assert [wide[n][0][-1].round(2) for n in ("Rotate", "TranslateX", "ShearY")] == [
        135,
        32,
        np.float32(0.99),
    ]
    assert wide["Posterize"][0][-1] == 2
    mix = T.AugMix(all_ops=False)._augmentation_space(10, (30, 60))
    assert sorted(mix) == sorted(
        "ShearX ShearY TranslateX TranslateY Rotate Posterize Solarize AutoContrast "
        "Equalize".split()
    )
    assert mix["TranslateX"][0][-1] == 20 and mix["Posterize"][0].tolist()[-1] == 0


def single_changes(image, sizes, bits, threshold):
    """What one change, of those magnitudes and either sign, makes of the image."""
    shear, shift, angle, factor = sizes
    images = [image, ImageOps.posterize(image, bits), ImageOps.autocontrast(image)]
    images += [ImageOps.solarize(image, threshold), ImageOps.equalize(image)]
    for sign in (-1, 1):
        for kind in ("Brightness", "Color", "Contrast", "Sharpness"):
            enhance = getattr(ImageEnhance, kind)(image).enhance
            images.append(enhance(1 + sign * float(np.float32(factor))))
        s, m = sign * shear, sign * int(shift)
        for matrix in (
            (1, -s, 0, 0, 1, 0),
            (1, 0, 0, -s, 1, 0),
            (1, 0, -m, 0, 1, 0),
            (1, 0, 0, 0, 1, -m),
        ):
            images.append(image.transform(image.size, 0, matrix, fillcolor=(5, 5, 5)))
        images.append(image.rotate(sign * angle, fillcolor=(5, 5, 5)))
    return {np.asarray(i).tobytes() for i in images}


def test_every_change_is_drawn(torch):
    """Of one change there is nothing else than Pillow's own results, each of them."""
    square = np.random.RandomState(6).randint(0, 256, (24, 24, 3)).astype(np.uint8)
    image = Image.fromarray(square)
    shift = 150 / 331 * 24
    torch.manual_seed(5)
    for transform, sizes, bits, threshold in (
        (T.RandAugment(1, 30, fill=5), (0.3, shift, 30, 0.9), 4, 0),
        (T.RandAugment(1, 15, fill=5), (0.15, shift / 2, 15, 0.45), 6, 127.5),
    ):
        drawn = {np.asarray(transform(image)).tobytes() for _ in range(400)}
        assert drawn == single_changes(image, sizes, bits, threshold)
    # Two magnitudes: none, the image itself (solarized: from 255 on), and most.
    wide = T.TrivialAugmentWide(2, fill=5)
    drawn = {np.asarray(wide(image)).tobytes() for _ in range(600)}
    expected = single_changes(image, (0.99, 32, 135, 0.99), 2, 0)
    expected.add(np.asarray(ImageOps.solarize(image, 255)).tobytes())
    assert drawn == expected


def test_autoaugment_follows_its_policy(torch):
    transform = T.AutoAugment(T.AutoAugmentPolicy.CIFAR10)
    transform.policies = [(("Invert", 1.0, None), ("Rotate", 1.0, 9))]
    image = Image.fromarray(PIXELS)
    inverted = ImageOps.invert(image)
    drawn = {np.asarray(transform(image)).tobytes() for _ in range(40)}
    expected = {np.asarray(inverted.rotate(a)).tobytes() for a in (-30, 30)}
    assert drawn == expected
    transform.policies = [(("Invert", -1.0, None), ("Equalize", -1.0, None))]
    assert transform(image) is image


def test_tensors_get_what_images_get(torch):
    """But for pixels that lie on a border between two when something is turned."""
    image, tensor = Image.fromarray(PIXELS), as_tensor(torch, PIXELS)
    for transform in (
        T.AutoAugment(fill=[1, 2, 3]),
        T.RandAugment(),
        T.TrivialAugmentWide(interpolation=T.InterpolationMode.BILINEAR),
        T.AugMix(),
    ):
        for seed in range(30):
            torch.manual_seed(seed)
            expected = np.asarray(transform(image)).astype(int)
            torch.manual_seed(seed)
            got = transform(tensor)
            assert got.dtype == torch.uint8 and got.shape == tensor.shape
            far = np.abs(got.numpy().transpose(1, 2, 0) - expected) > 2
            assert far.mean() < 0.2, (transform, seed)


def test_mixtures(torch):
    mix = T.AugMix(mixture_width=4, alpha=0.7)
    weights = mix._weights(200)
    assert tuple(weights.shape) == (200, 5) and (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(1).numpy(), 1, rtol=1e-5)
    # Of Beta(0.7, 0.7) and Dirichlet(0.7, ...): half, and an eighth each.
    np.testing.assert_allclose(weights.mean(0).numpy(), [0.5] + [0.125] * 4, atol=0.08)

    class Nothing(T.AugMix):
        def _augmentation_space(self, num_bins, image_size):
            return {"Identity": (np.float32(0), False)}

    batch = torch.stack([as_tensor(torch, p) for p in (PIXELS, NARROW)])
    for image in (Image.fromarray(PIXELS), batch, batch[0]):
        difference = np.asarray(Nothing()(image)).astype(int) - np.asarray(image)
        assert np.abs(difference).max() <= 1  # cut off, as in torchvision
    mixed = T.AugMix(severity=10, chain_depth=2)(batch)
    assert mixed.shape == batch.shape and mixed.dtype == torch.uint8


def test_names_and_text():
    from holdfast.vision.transforms.autoaugment import AutoAugment, AutoAugmentPolicy

    assert AutoAugment is T.AutoAugment and AutoAugmentPolicy("svhn").name == "SVHN"
    assert repr(T.RandomPosterize(3)) == "RandomPosterize(bits=3,p=0.5)"
    assert repr(T.AutoAugment()) == (
        "AutoAugment(policy=AutoAugmentPolicy.IMAGENET, fill=None)"
    )
    assert math.isclose(T.RandAugment().magnitude, 9)
