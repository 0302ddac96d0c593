# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""vision.transforms: what is drawn, how they compose, in worker processes too."""

import pickle
import random

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")

from holdfast import nn  # noqa: E402
from holdfast.utils import data  # noqa: E402
from holdfast.vision import transforms as T  # noqa: E402

PIXELS = np.random.RandomState(2).randint(0, 256, (12, 16, 3)).astype(np.uint8)
RANDOM = [
    T.RandomCrop(7, padding=2),
    T.RandomCrop((20, 9), pad_if_needed=True, padding_mode="reflect"),
    T.RandomResizedCrop((6, 5)),
    T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(),
    T.RandomRotation(40),
    T.RandomAffine(20, (0.1, 0.2), (0.8, 1.2), (1, 5, 2, 8), fill=3),
    T.ColorJitter(0.4, 0.4, 0.4, 0.2),
    T.RandomGrayscale(0.5),
    T.GaussianBlur(3),
    T.RandomApply([T.ColorJitter(0.5)], 0.5),
    T.RandomInvert(),
    T.RandomPosterize(3),
    T.RandomSolarize(99),
    T.RandomAdjustSharpness(1.8),
    T.RandomAutocontrast(),
    T.AutoAugment(T.AutoAugmentPolicy.SVHN, fill=7),
    T.RandAugment(),
    T.TrivialAugmentWide(),
    T.AugMix(),
]


@pytest.fixture
def image():
    return Image.fromarray(PIXELS)


def drawn(torch, transform, image, count=6):
    torch.manual_seed(7)
    return [np.asarray(transform(image)) for _ in range(count)]


@pytest.mark.parametrize("transform", RANDOM, ids=repr)
def test_seeds_repeat_what_is_drawn(torch, image, transform):
    tensor = T.PILToTensor()(image)
    for img in (image, tensor):
        first, second = (drawn(torch, transform, img) for _ in range(2))
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, other)
        assert len({result.tobytes() for result in first}) > 1
    # The same was drawn for the tensor as for the image.
    shapes = [result.shape for result in drawn(torch, transform, image)]
    first = [result.transpose(1, 2, 0).shape for result in first]
    assert first == shapes


@pytest.mark.parametrize("transform", RANDOM, ids=repr)
def test_pickled(torch, image, transform):
    again = pickle.loads(pickle.dumps(transform))
    assert repr(again) == repr(transform)
    results = drawn(torch, transform, image, 1), drawn(torch, again, image, 1)
    np.testing.assert_array_equal(*results)


def test_probabilities(torch, image):
    mirrored = PIXELS[:, ::-1]
    np.testing.assert_array_equal(T.RandomHorizontalFlip(1)(image), mirrored)
    assert T.RandomHorizontalFlip(0)(image) is image
    np.testing.assert_array_equal(T.RandomVerticalFlip(1)(image), PIXELS[::-1])
    assert T.RandomGrayscale(0)(image) is image
    grey = np.asarray(T.RandomGrayscale(1)(image))
    np.testing.assert_array_equal(grey[..., 0], np.asarray(image.convert("L")))
    assert T.RandomApply([T.Grayscale()], 0)(image) is image
    flip = T.RandomHorizontalFlip(0.25)
    count = sum(flip(image) is not image for _ in range(400))
    assert 50 < count < 150


def test_a_crop_is_a_part(torch, image):
    places = set()
    for _ in range(100):
        top, left, height, width = T.RandomCrop.get_params(image, (11, 14))
        assert (height, width) == (11, 14)
        places.add((top, left))
    assert places == {(top, left) for top in range(2) for left in range(3)}
    for _ in range(50):
        place = T.RandomResizedCrop.get_params(image, (0.2, 0.5), (0.8, 1.25))
        top, left, height, width = place
        assert 0 <= top <= 12 - height and 0 <= left <= 16 - width
        assert 0.1 < height * width / (12 * 16) < 0.65
    # What never fits is the middle, as far as the ratio lets it.
    middle = T.RandomResizedCrop.get_params(image, (5, 6), (1, 1))
    assert middle == (0, 2, 12, 12)


def test_parameters_stay_in_their_ranges(torch):
    for _ in range(30):
        angle, shift, scale, shear = T.RandomAffine.get_params(
            [-10, 10], (0.5, 0.1), (0.5, 0.7), [1, 2, 3, 4], (20, 10)
        )
        assert -10 <= angle <= 10 and 0.5 <= scale <= 0.7
        assert abs(shift[0]) <= 10 and abs(shift[1]) <= 1
        assert 1 <= shear[0] <= 2 and 3 <= shear[1] <= 4
        order, brightness, *others = T.ColorJitter.get_params([0.5, 1.5], *3 * [None])
        assert sorted(order.tolist()) == [0, 1, 2, 3]
        assert 0.5 <= brightness <= 1.5 and others == [None] * 3


def test_erasing(torch):
    x = torch.ones(3, 10, 12)
    assert T.RandomErasing(0)(x) is x
    for _ in range(10):
        erased = T.RandomErasing(1, value=(2, 3, 4))(x).numpy()
        changed = erased != 1
        rows, columns = np.nonzero(changed[0])
        area = (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
        assert changed[0].sum() == area and 1 <= area <= 50
        for channel, value in zip(erased, (2, 3, 4)):
            assert set(channel[changed[0]]) == {value}
    assert bool((x == 1).all())
    assert T.RandomErasing(1, inplace=True)(x) is x
    noise = T.RandomErasing(1, (0.3, 0.33), value="random")(torch.zeros(3, 32, 32))
    assert len(set(noise.flatten().tolist())) > 100


def test_composition(torch, image):
    transform = T.Compose([T.Resize(6), T.CenterCrop(4), T.ToTensor(), T.Lambda(abs)])
    assert transform(image).shape == (3, 4, 4)
    modules = nn.Sequential(T.CenterCrop(4), T.Normalize(0.0, 1.0))
    assert modules(torch.zeros(2, 3, 8, 8)).shape == (2, 3, 4, 4)
    random.seed(1)
    choice = T.RandomChoice([T.CenterCrop(2), T.CenterCrop(3)], p=[0, 1])
    assert choice(image).size == (3, 3)
    order = T.RandomOrder([T.CenterCrop(9), T.Resize(5)])
    assert {order(image).size for _ in range(20)} == {(5, 5), (9, 9)}
    crops = T.Compose(
        [
            T.TenCrop(4),
            T.Lambda(lambda ten: torch.stack([T.ToTensor()(crop) for crop in ten])),
        ]
    )
    assert crops(image).shape == (10, 3, 4, 4)
    with pytest.raises(TypeError, match="should be a sequence"):
        T.RandomOrder(3)


def test_linear_transformation(torch):
    matrix, mean = torch.arange(16.0).view(4, 4), torch.ones(4)
    whiten = T.LinearTransformation(matrix, mean)
    x = torch.arange(8.0).view(2, 1, 2, 2)
    expected = (x.numpy().reshape(2, 4) - 1) @ matrix.numpy()
    np.testing.assert_allclose(whiten(x).numpy(), expected.reshape(2, 1, 2, 2))
    with pytest.raises(ValueError, match="incompatible shape"):
        whiten(torch.zeros(1, 2, 3))
    with pytest.raises(ValueError, match="square"):
        T.LinearTransformation(matrix[:2], mean)


class Pictures(data.Dataset):
    """Images of Pillow, through a transform."""

    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return self.transform(Image.fromarray(np.roll(PIXELS, index, 0))), index


def test_in_worker_processes(torch):
    plain = T.Compose([T.Resize(8), T.ToTensor(), T.Normalize((0.5,), (0.25,))])
    alone = list(data.DataLoader(Pictures(plain), 4))
    shared = list(data.DataLoader(Pictures(plain), 4, num_workers=2))
    for (x, i), (expected, j) in zip(shared, alone, strict=True):
        assert i.tolist() == j.tolist()
        np.testing.assert_array_equal(x.numpy(), expected.numpy())
    drawing = T.Compose([*RANDOM[3:8], T.RandomCrop(8), T.ToTensor()])

    def epoch():
        torch.manual_seed(3)
        loader = data.DataLoader(Pictures(drawing), 4, num_workers=2)
        return [x.numpy() for x, _ in loader]

    for one, other in zip(epoch(), epoch(), strict=True):
        np.testing.assert_array_equal(one, other)


ERRORS = [
    (lambda: T.Resize((1, 2, 3)), ValueError, "3 element"),
    (lambda: T.Resize("8"), TypeError, "str"),
    (lambda: T.CenterCrop((1, 2, 3)), ValueError, r"\(1, 2, 3\)"),
    (lambda: T.RandomCrop(40)(Image.new("L", (9, 8))), ValueError, r"40.*\(8, 9\)"),
    (lambda: T.RandomResizedCrop(3, (1, 0.5)), ValueError, r"\(1, 0.5\)"),
    (lambda: T.RandomResizedCrop(3, ratio=(0, 1)), ValueError, r"\(0, 1\)"),
    (lambda: T.Pad(3, padding_mode="x"), ValueError, "'x'"),
    (lambda: T.Pad("3"), TypeError, "str"),
    (lambda: T.Lambda(3), TypeError, "int"),
    (lambda: T.RandomRotation(-3), ValueError, "-3"),
    (lambda: T.RandomRotation((1, 2, 3)), ValueError, r"\(1, 2, 3\)"),
    (lambda: T.RandomAffine(3, (0, 2)), ValueError, r"\(0, 2\)"),
    (lambda: T.RandomAffine(3, scale=(0, 2)), ValueError, r"\(0, 2\)"),
    (lambda: T.ColorJitter(-0.5), ValueError, "-0.5"),
    (lambda: T.ColorJitter(hue=0.7), ValueError, "0.7"),
    (lambda: T.ColorJitter(contrast=(2, 1)), ValueError, r"\(2, 1\)"),
    (lambda: T.GaussianBlur(2), ValueError, r"\(2, 2\)"),
    (lambda: T.GaussianBlur(3, (2, 1)), ValueError, r"\(2, 1\)"),
    (lambda: T.RandomErasing(2), ValueError, "Got 2"),
    (lambda: T.RandomErasing(value="x"), ValueError, "'x'"),
    (lambda: T.RandomErasing(scale=(0, 2)), ValueError, r"\(0, 2\)"),
]


@pytest.mark.parametrize("call, kind, message", ERRORS)
def test_errors_name_the_values(torch, call, kind, message):
    with pytest.raises(kind, match=message):
        call()
