# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms beside torchvision's, on the same images."""

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")
peer = pytest.importorskip("torchvision")

import torch as peer_torch  # noqa: E402

from holdfast.vision import transforms as T  # noqa: E402
from holdfast.vision.transforms import functional as F  # noqa: E402

PT = peer.transforms
PF = peer.transforms.functional
PIXELS = np.random.RandomState(3).randint(0, 256, (3, 13, 18)).astype(np.uint8)
# Name, arguments; the allowed difference of bytes, and of floats.
CALLS = [
    ("hflip", {}, 0, 0),
    ("vflip", {}, 0, 0),
    ("crop", dict(top=2, left=3, height=5, width=6), 0, 0),
    ("crop", dict(top=-2, left=-3, height=25, width=9), 0, 0),
    ("center_crop", dict(output_size=[5]), 0, 0),
    ("center_crop", dict(output_size=[6, 25]), 0, 0),
    ("center_crop", dict(output_size=[30, 25]), 0, 0),
    ("pad", dict(padding=[2], fill=7), 0, 0),
    ("pad", dict(padding=[2, 3], padding_mode="edge"), 0, 0),
    ("pad", dict(padding=[1, 2, 3, 4], padding_mode="reflect"), 0, 0),
    ("pad", dict(padding=[1, 2, 3, 4], padding_mode="symmetric"), 0, 0),
    ("pad", dict(padding=[-1, 2, -3, 4], padding_mode="symmetric"), 0, 0),
    ("resize", dict(size=[7]), 1, 1e-6),
    ("resize", dict(size=[26]), 1, 1e-6),
    ("resize", dict(size=[12], max_size=14), 1, 1e-6),
    ("resize", dict(size=[9, 21], interpolation="bicubic"), 1, 1e-5),
    ("resize", dict(size=[9, 21], interpolation="nearest"), 0, 0),
    ("resize", dict(size=[6, 7], antialias=True), 1, 1e-6),
    ("resize", dict(size=[6, 7], interpolation="bicubic", antialias=True), 1, 1e-5),
    ("resized_crop", dict(top=1, left=2, height=9, width=8, size=[5, 4]), 1, 1e-6),
    ("rotate", dict(angle=30), 0, 0),
    ("rotate", dict(angle=-75.5, interpolation="bilinear", fill=[9.0]), 1, 1e-4),
    ("rotate", dict(angle=45, expand=True, fill=[5.0]), 0, 0),
    ("rotate", dict(angle=90, expand=True), 0, 0),
    ("rotate", dict(angle=20, center=[3, 4]), 0, 0),
    (
        "affine",
        dict(angle=15, translate=[2, -1], scale=1.2, shear=[5.0, -3.0]),
        0,
        0,
    ),
    (
        "affine",
        dict(
            angle=0,
            translate=[0, 0],
            scale=0.7,
            shear=[12.0],
            interpolation="bilinear",
            center=[2, 9],
            fill=[3.0],
        ),
        1,
        1e-4,
    ),
    ("adjust_brightness", dict(brightness_factor=0.4), 1, 1e-6),
    ("adjust_brightness", dict(brightness_factor=1.9), 1, 1e-6),
    ("adjust_contrast", dict(contrast_factor=0.3), 1, 1e-6),
    ("adjust_contrast", dict(contrast_factor=1.7), 1, 1e-6),
    ("adjust_saturation", dict(saturation_factor=0.3), 1, 1e-6),
    ("adjust_saturation", dict(saturation_factor=1.7), 1, 1e-6),
    ("adjust_hue", dict(hue_factor=0.3), 1, 1e-5),
    ("adjust_hue", dict(hue_factor=-0.45), 1, 1e-5),
    ("adjust_gamma", dict(gamma=0.6, gain=1.1), 1, 1e-5),
    ("rgb_to_grayscale", dict(num_output_channels=1), 1, 1e-6),
    ("rgb_to_grayscale", dict(num_output_channels=3), 1, 1e-6),
    ("gaussian_blur", dict(kernel_size=[3, 5]), 1, 1e-6),
    ("gaussian_blur", dict(kernel_size=[5, 5], sigma=[0.4, 1.7]), 1, 1e-6),
    ("get_dimensions", {}, 0, 0),
    ("get_image_size", {}, 0, 0),
    ("get_image_num_channels", {}, 0, 0),
]


def identity(value):
    if isinstance(value, dict):
        return " ".join(f"{name}={value[name]}" for name in value)
    return value if isinstance(value, str) else ""


def both_calls(name, arguments):
    theirs = dict(arguments)
    if "interpolation" in arguments:
        mode = arguments["interpolation"]
        arguments = dict(arguments, interpolation=T.InterpolationMode(mode))
        theirs["interpolation"] = PT.InterpolationMode(mode)
    return (
        lambda image: getattr(F, name)(image, **arguments),
        lambda image: getattr(PF, name)(image, **theirs),
    )


def close(got, expected, tolerance):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    difference = np.abs(got.astype(float) - expected.astype(float))
    assert difference.max(initial=0) <= tolerance


@pytest.mark.parametrize("name, arguments, bytes_, floats", CALLS, ids=identity)
def test_of_pillow(torch, name, arguments, bytes_, floats):
    if name in ("rotate", "affine") and "fill" in arguments:
        # torchvision takes lists as long as the channels only.
        arguments = dict(arguments, fill=arguments["fill"][0])
    ours, theirs = both_calls(name, arguments)
    for mode in ("RGB", "L"):
        image = Image.fromarray(PIXELS.transpose(1, 2, 0)).convert(mode)
        # Blurring alone is done in other steps than torchvision's.
        tolerance = 1 if name == "gaussian_blur" else 0
        close(ours(image), theirs(image), tolerance)


@pytest.mark.parametrize("name, arguments, bytes_, floats", CALLS, ids=identity)
def test_of_tensors(torch, name, arguments, bytes_, floats):
    ours, theirs = both_calls(name, arguments)
    inputs = [PIXELS, np.stack([PIXELS, PIXELS[::-1]]), PIXELS[:1]]
    if arguments.get("num_output_channels") == 3:
        del inputs[2]  # torchvision returns one channel there
    for pixels in inputs:
        got = ours(torch.from_numpy(pixels))
        expected = theirs(peer_torch.from_numpy(pixels))
        close(got, expected, bytes_)
        floating = pixels.astype(np.float32) / np.float32(255)
        got = ours(torch.from_numpy(floating))
        close(got, theirs(peer_torch.from_numpy(floating)), floats)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I", "F"])
def test_to_tensor_and_back(torch, mode):
    image = Image.fromarray(PIXELS.transpose(1, 2, 0)).convert("L").convert(mode)
    close(F.to_tensor(image), PF.to_tensor(image), 0)
    close(F.pil_to_tensor(image), PF.pil_to_tensor(image), 0)
    if mode not in ("1", "CMYK", "P"):
        tensor = F.pil_to_tensor(image)
        back = F.to_pil_image(tensor)
        expected = PF.to_pil_image(PF.pil_to_tensor(image))
        assert back.mode == expected.mode
        close(back, expected, 0)


DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


@pytest.mark.parametrize("before", DTYPES)
@pytest.mark.parametrize("after", DTYPES)
def test_dtypes(torch, before, after):
    values = np.array([[0, 1, 63, 100, 127]])
    values = values / 127 if "float" in before else values
    values = values.astype(before)
    try:
        expected = PF.convert_image_dtype(
            peer_torch.from_numpy(values), getattr(peer_torch, after)
        )
    except RuntimeError:
        with pytest.raises(RuntimeError, match="be performed safely"):
            F.convert_image_dtype(torch.from_numpy(values), getattr(torch, after))
        return
    got = F.convert_image_dtype(torch.from_numpy(values), getattr(torch, after))
    close(got, expected, 1e-6)


def made(module):
    return [
        module.ToTensor(),
        module.PILToTensor(),
        module.ToPILImage(),
        module.ToPILImage("RGB"),
        module.Normalize((0.5, 0.1), (0.2, 0.3)),
        module.Resize(5),
        module.Resize((5, 6), max_size=None, antialias=True),
        module.CenterCrop(5),
        module.Pad(3, fill=2, padding_mode="edge"),
        module.Lambda(abs),
        module.RandomCrop(5, padding=2),
        module.RandomHorizontalFlip(0.3),
        module.RandomVerticalFlip(),
        module.RandomResizedCrop(5),
        module.FiveCrop(4),
        module.TenCrop((4, 5), vertical_flip=True),
        module.ColorJitter(0.2, (0.5, 1.5), 0, 0.1),
        module.ColorJitter(),
        module.RandomRotation(30),
        module.RandomRotation((5, 10), expand=True, center=(2, 3)),
        module.RandomAffine(10),
        module.RandomAffine((1, 2), (0.1, 0.2), (0.5, 1), (1, 2, 3, 4), fill=3),
        module.RandomAffine(0, shear=3, center=(1, 2)),
        module.Grayscale(3),
        module.RandomGrayscale(),
        module.GaussianBlur(3),
        module.GaussianBlur((3, 5), 0.7),
        module.RandomErasing(value="random"),
        module.RandomApply([module.ToTensor(), module.CenterCrop(3)], 0.2),
        module.RandomChoice([module.ToTensor()], p=[1]),
        module.RandomOrder([module.ToTensor()]),
        module.Compose([module.ToTensor(), module.CenterCrop((3, 2))]),
    ]


def test_representations(torch):
    # One bracket too many there.
    theirs = [repr(theirs).replace("bilinear),", "bilinear,") for theirs in made(PT)]
    assert [repr(ours) for ours in made(T)] == theirs
