# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""vision.transforms.functional: values worked out by hand, in NumPy or by Pillow."""

import subprocess
import sys

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")

from holdfast.vision.transforms import InterpolationMode  # noqa: E402
from holdfast.vision.transforms import functional as F  # noqa: E402

PIXELS = np.random.RandomState(1).randint(0, 256, (6, 9, 3)).astype(np.uint8)


@pytest.fixture
def images(torch):
    """The same pixels as an image of Pillow and as a tensor."""
    return Image.fromarray(PIXELS), torch.from_numpy(PIXELS.transpose(2, 0, 1).copy())


def array(image):
    """[H, W, C] or [H, W], of either kind."""
    got = np.asarray(image)
    return got if isinstance(image, Image.Image) else got.transpose(1, 2, 0)


def expect(images, call, expected):
    for image in images:
        got = call(image)
        assert type(got) is type(image)
        np.testing.assert_array_equal(array(got), expected)


def test_to_tensor(torch):
    tensor = F.to_tensor(PIXELS)
    assert tensor.dtype == torch.float32
    expected = PIXELS.transpose(2, 0, 1) / np.float32(255)
    np.testing.assert_array_equal(tensor.numpy(), expected)
    image = Image.fromarray(PIXELS)
    np.testing.assert_array_equal(F.to_tensor(image).numpy(), expected)
    assert F.to_tensor(image.convert("L")).shape == (1, 6, 9)
    assert F.to_tensor(image.convert("I")).dtype == torch.int32
    grey = np.arange(6.0).reshape(2, 3)
    assert F.to_tensor(grey).tolist() == [grey.tolist()]
    bits = Image.fromarray(np.array([[True, False]]))
    assert F.to_tensor(bits).tolist() == [[[1.0, 0.0]]]
    assert F.pil_to_tensor(image).dtype == torch.uint8


def test_there_and_back(images):
    image, tensor = images
    assert F.to_pil_image(tensor) == image
    assert F.to_pil_image(PIXELS) == image
    assert F.to_pil_image(F.to_tensor(image)) == image
    assert F.to_pil_image(tensor[0]).mode == "L"
    assert F.to_pil_image(tensor, "HSV").mode == "HSV"


def test_sizes(images):
    for image in images:
        assert F.get_dimensions(image) == [3, 6, 9]
        assert F.get_image_size(image) == [9, 6]
        assert F.get_dimensions(F.resize(image, 4)) == [3, 4, 6]
        assert F.get_dimensions(F.resize(image, [4], max_size=5)) == [3, 3, 5]
        assert F.get_dimensions(F.resize(image, (5, 20))) == [3, 5, 20]
        assert F.resize(image, (6, 9)) is image


def test_places(images):
    expect(images, F.hflip, PIXELS[:, ::-1])
    expect(images, F.vflip, PIXELS[::-1])
    expect(images, lambda i: F.crop(i, 1, 2, 3, 4), PIXELS[1:4, 2:6])
    around = np.pad(PIXELS, ((2, 1), (0, 3), (0, 0)))
    expect(images, lambda i: F.crop(i, -2, 0, 9, 12), around)
    expect(images, lambda i: F.crop(i, 20, 20, 2, 3), np.zeros((2, 3, 3), np.uint8))
    expect(images, lambda i: F.center_crop(i, (2, 3)), PIXELS[2:4, 3:6])
    expect(images, lambda i: F.rotate(i, 180), PIXELS[::-1, ::-1])
    turned = np.rot90(PIXELS[:, :8])
    even = [F.crop(image, 0, 0, 6, 8) for image in images]
    expect(even, lambda i: F.rotate(i, 90, expand=True), turned)
    shifted = np.zeros_like(PIXELS)
    shifted[2:, 3:] = PIXELS[:-2, :-3]
    expect(images, lambda i: F.affine(i, 0, (3, 2), 1.0, 0), shifted)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric"])
def test_padding(images, mode):
    expected = np.pad(PIXELS, ((2, 4), (1, 3), (0, 0)), mode)
    expect(images, lambda i: F.pad(i, (1, 2, 3, 4), padding_mode=mode), expected)
    cut = expected[2:, 1:]
    expect(images, lambda i: F.pad(i, (0, 0, 3, 4), padding_mode=mode), cut)


def test_padding_with_a_colour(images):
    expected = np.pad(PIXELS, ((1, 1), (2, 2), (0, 0)), constant_values=9)
    expect(images, lambda i: F.pad(i, (2, 1), fill=9), expected)
    expect(images, lambda i: F.pad(i, -1), PIXELS[1:-1, 1:-1])
    colour = F.pad(images[0], 1, fill=(1, 2, 3)).getpixel((0, 0))
    assert colour == (1, 2, 3)


def test_five_and_ten(images):
    for image in images:
        five = F.five_crop(image, (2, 3))
        corners = PIXELS[:2, :3], PIXELS[:2, -3:], PIXELS[-2:, :3], PIXELS[-2:, -3:]
        for got, expected in zip(five, (*corners, PIXELS[2:4, 3:6]), strict=True):
            np.testing.assert_array_equal(array(got), expected)
        ten = F.ten_crop(image, 2, vertical_flip=True)
        assert len(ten) == 10
        np.testing.assert_array_equal(array(ten[5]), PIXELS[::-1][:2, :2])


def test_colours(torch, images):
    doubled = np.minimum(PIXELS.astype(int) * 2, 255)
    expect(images, lambda i: F.adjust_brightness(i, 2), doubled)
    for adjust in (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation):
        expect(images, lambda i: adjust(i, 1.0), PIXELS)
    red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
    turned = F.adjust_hue(red, 1 / 3).flatten()
    np.testing.assert_allclose(turned.tolist(), [0, 1, 0], atol=1e-6)
    assert F.adjust_gamma(torch.full((1, 1, 1), 0.5), 2, gain=3).item() == 0.75
    grey = F.rgb_to_grayscale(images[1]).numpy()[0]
    expected = PIXELS @ np.array([0.2989, 0.587, 0.114])
    assert np.abs(grey - expected).max() <= 1
    for image in images:
        assert F.get_dimensions(F.rgb_to_grayscale(image, 3)) == [3, 6, 9]


def test_normalize(torch):
    x = torch.arange(12.0).view(3, 2, 2)
    expected = (x.numpy() - np.array([1, 2, 3]).reshape(3, 1, 1)) / 4
    np.testing.assert_allclose(F.normalize(x, (1, 2, 3), (4, 4, 4)).numpy(), expected)
    assert x[0, 0, 0].item() == 0
    assert F.normalize(x, [1, 2, 3], [4.0], inplace=True) is x
    np.testing.assert_allclose(x.numpy(), expected)


def test_blur_and_erase(torch, images):
    spot = torch.zeros(1, 7, 7)
    spot[0, 3, 3] = 1
    blurred = F.gaussian_blur(spot, (3, 5), 1.0).numpy()[0]
    x, y = (np.exp(-0.5 * np.arange(-n, n + 1.0) ** 2) for n in (1, 2))
    expected = np.outer(y / y.sum(), x / x.sum())
    np.testing.assert_allclose(blurred[1:6, 2:5], expected, rtol=1e-5)
    blurred = [array(F.gaussian_blur(image, 5)).astype(int) for image in images]
    assert np.abs(blurred[0] - blurred[1]).max() <= 1
    erased = F.erase(images[1], 1, 2, 3, 4, 7)
    expected = PIXELS.copy()
    expected[1:4, 2:6] = 7
    np.testing.assert_array_equal(array(erased), expected)
    np.testing.assert_array_equal(array(images[1]), PIXELS)


def test_resize_interpolates(torch):
    x = torch.tensor([[[0.0, 1.0]]])
    assert F.resize(x, (1, 4)).tolist() == [[[0.0, 0.25, 0.75, 1.0]]]
    nearest = InterpolationMode.NEAREST
    assert F.resize(x, (1, 4), nearest).tolist() == [[[0.0, 0.0, 1.0, 1.0]]]
    step = torch.tensor([[[0, 1, 255, 254]]], dtype=torch.uint8)
    assert F.resize(step, (1, 2), antialias=True).dtype == torch.uint8


ERRORS = [
    (lambda i, t: F.to_tensor([1]), TypeError, "<class 'list'>"),
    (lambda i, t: F.to_tensor(np.zeros(3)), ValueError, r"Got 1 dim.*\(3,\)"),
    (lambda i, t: F.pil_to_tensor(t), TypeError, "should be PIL Image"),
    (lambda i, t: F.to_pil_image(t, "L"), ValueError, "Got L"),
    (lambda i, t: F.to_pil_image(t.float().repeat(2, 1, 1)), ValueError, "Got 6"),
    (lambda i, t: F.to_pil_image(t[0], "F"), ValueError, r"\(F\).*uint8"),
    (lambda i, t: F.to_pil_image(np.zeros((2, 2))), TypeError, "float64"),
    (lambda i, t: F.normalize(i, 0, 1), TypeError, "Tensor Image"),
    (lambda i, t: F.normalize(t, 0, 1), TypeError, "uint8"),
    (lambda i, t: F.normalize(t[0].float(), 0, 1), ValueError, r"\(6, 9\)"),
    (lambda i, t: F.normalize(t.float(), 0, (1, 0, 1)), ValueError, r"\(1, 0, 1\)"),
    (lambda i, t: F.resize(t, (1, 2, 3)), ValueError, r"3 element"),
    (lambda i, t: F.resize(i, "5"), TypeError, "<class 'str'>"),
    (lambda i, t: F.resize(i, 5, max_size=4), ValueError, "max_size = 4 .* 5"),
    (lambda i, t: F.resize(i, 0), ValueError, "size=0"),
    (lambda i, t: F.resize(t, 3, interpolation=1), ValueError, "lanczos"),
    (lambda i, t: F.resize(i, 3, interpolation="x"), TypeError, "'x'"),
    (lambda i, t: F.pad(t, (1, 2, 3)), ValueError, "3 element"),
    (lambda i, t: F.pad(i, 1, padding_mode="wrap"), ValueError, "'wrap'"),
    (lambda i, t: F.pad(i, 1, fill=(1, 2)), ValueError, r"\(2 != 3\)"),
    (lambda i, t: F.pad(i, -9), ValueError, r"-9"),
    (lambda i, t: F.five_crop(t, 7), ValueError, r"\(7, 7\).*\(6, 9\)"),
    (lambda i, t: F.hflip(3), TypeError, "<class 'int'>"),
    (lambda i, t: F.rotate(t, "x"), TypeError, "<class 'str'>"),
    (lambda i, t: F.rotate(t, 5, fill=(1, 2)), ValueError, r"\(2 != 3\)"),
    (lambda i, t: F.affine(i, 0, (0, 0), 0, 0), ValueError, "Got 0"),
    (lambda i, t: F.adjust_hue(i, 0.6), ValueError, "0.6"),
    (lambda i, t: F.adjust_brightness(t, -1), ValueError, "-1"),
    (lambda i, t: F.adjust_contrast(t[:2], 1), TypeError, "found 2"),
    (lambda i, t: F.adjust_gamma(i, -2), ValueError, "-2"),
    (lambda i, t: F.rgb_to_grayscale(i, 2), ValueError, "Got 2"),
    (lambda i, t: F.gaussian_blur(i, 4), ValueError, r"\(4, 4\)"),
    (lambda i, t: F.gaussian_blur(t, 3, 0), ValueError, "Got"),
    (lambda i, t: F.gaussian_blur(t, 19), ValueError, r"\(19, 19\).*\(9, 6\)"),
    (lambda i, t: F.erase(i, 0, 0, 1, 1, 0), TypeError, "Tensor Image"),
]


@pytest.mark.parametrize("call, kind, message", ERRORS)
def test_errors_name_the_values(images, call, kind, message):
    with pytest.raises(kind, match=message):
        call(*images)


def test_without_pillow():
    program = """
import sys
sys.modules["PIL"] = None
from holdfast.vision import transforms
print(transforms.ToTensor())
import numpy as np
try:
    transforms.functional.to_pil_image(np.zeros((2, 2), np.uint8))
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "Images need Pillow, which is not installed" in result.stdout


def test_what_is_missing_is_named(torch):
    from holdfast.vision import transforms

    with pytest.raises(AttributeError, match="transforms.ElasticTransform"):
        transforms.ElasticTransform
    with pytest.raises(AttributeError, match="transforms.functional.perspective"):
        F.perspective
    assert not hasattr(F, "elastic_transform")
