# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The MNIST family, read from local files."""

import copy
import gzip
import os
import pickle
import struct
import tracemalloc

import numpy
import pytest
from vision_files import idx, mnist

from holdfast.utils import data
from holdfast.vision import datasets

pytest.importorskip("PIL")


def to_array(image):
    return numpy.asarray(image, dtype=numpy.float32) / 255


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("place", ["MNIST/raw", "MNIST", "."])
@pytest.mark.parametrize("download", [False, True])
def test_files_are_read_where_they_lie(torch, tmp_path, place, zipped, download):
    images, labels = mnist(tmp_path / place, 20, "train", zipped)
    tests, _ = mnist(tmp_path / place, 7, "t10k", zipped)
    made = datasets.MNIST(str(tmp_path), download=download)
    assert len(made) == 20 and made.train
    assert made.data.dtype is torch.uint8 and made.targets.dtype is torch.int64
    assert numpy.array_equal(made.data.numpy(), images)
    assert numpy.array_equal(made.targets.numpy(), labels)
    image, target = made[13]
    assert (image.mode, image.size, target, type(target)) == ("L", (28, 28), 3, int)
    assert numpy.array_equal(numpy.asarray(image), images[13])
    other = datasets.MNIST(tmp_path, train=False)
    assert numpy.array_equal(numpy.asarray(other[6][0]), tests[6])
    assert made.class_to_idx["3 - three"] == 3
    assert repr(other).splitlines()[1:] == [
        "    Number of datapoints: 7",
        f"    Root location: {tmp_path}",
        "    Split: Test",
    ]


def test_transforms_are_applied(torch, tmp_path):
    images, labels = mnist(tmp_path)
    made = datasets.MNIST(tmp_path, transform=to_array, target_transform=str)
    image, target = made[2]
    assert numpy.array_equal(image, images[2] / numpy.float32(255)) and target == "2"
    assert repr(made.transforms).startswith("StandardTransform\nTransform: <function")
    assert "Target transform: <class 'str'>" in repr(made)
    with pytest.raises(IndexError):
        made[20]


def test_what_is_written_shows_in_samples(torch, tmp_path):
    mnist(tmp_path)
    made = datasets.MNIST(tmp_path)
    made.data[4].fill_(9)
    made.targets[4] = 8
    assert numpy.asarray(made[4][0]).max() == 9 and made[4][1] == 8
    chosen = made.targets < 3
    made.data, made.targets = made.data[chosen], made.targets[chosen]
    assert len(made) == 6 and {made[i][1] for i in range(6)} == {0, 1, 2}
    made.targets = [5] * 6
    assert made[0][1] == 5 and made.targets == [5] * 6


def test_copies_and_pickles_are_equal(torch, tmp_path):
    mnist(tmp_path)
    made = datasets.MNIST(tmp_path, transform=to_array)
    made.targets[0] = 7
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert torch.equal(other.data, made.data)
        assert other[0][1] == 7 and numpy.array_equal(other[3][0], made[3][0])
        other.data[3].zero_()
        assert other[3][0].max() == 0 and made[3][0].max() > 0


@pytest.mark.parametrize("touched", [False, True], ids=["fresh", "on the daemon"])
def test_workers_and_splits(torch, tmp_path, touched):
    images, labels = mnist(tmp_path, 50)
    made = datasets.MNIST(tmp_path, transform=to_array)
    if touched:
        images = images // 2
        made.data.floor_divide_(2)
    first, second = data.random_split(made, [30, 20])
    seen = {}
    for part in (first, second):
        loader = data.DataLoader(part, batch_size=8, num_workers=2)
        places = iter(part.indices)
        for batch, target in loader:
            for image, label in zip(batch, target.tolist(), strict=True):
                seen[next(places)] = label, image.numpy()
    assert len(seen) == 50
    for place, (label, image) in seen.items():
        assert label == labels[place]
        assert numpy.array_equal(image, images[place] / numpy.float32(255))


def test_a_set_that_lives_on_the_daemon(torch, tmp_path):
    images, labels = mnist(tmp_path, 64)
    made = datasets.MNIST(tmp_path)
    there = data.TensorDataset(made.data, made.targets)
    for batch, target in data.DataLoader(there, batch_size=16, shuffle=True):
        for image, label in zip(batch.numpy(), target.tolist(), strict=True):
            (place,) = numpy.nonzero((images == image).all((1, 2)))[0]
            assert labels[place] == label


def test_old_names_warn(torch, tmp_path):
    mnist(tmp_path)
    made = datasets.MNIST(tmp_path)
    for old, new in (
        *(("train_data", "data"), ("test_data", "data")),
        *(("train_labels", "targets"), ("test_labels", "targets")),
    ):
        with pytest.warns(UserWarning, match=f"{old} has been renamed {new}"):
            assert getattr(made, old) is getattr(made, new)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(RuntimeError, match="Dataset not found") as caught:
        datasets.KMNIST(tmp_path, download=True)
    for part in (
        "train-images-idx3-ubyte and train-labels-idx1-ubyte",
        f"{tmp_path}/KMNIST/raw",
        "downloads nothing",
    ):
        assert part in str(caught.value)
    with pytest.raises(RuntimeError, match="apt install dataset-fashion-mnist"):
        datasets.FashionMNIST(tmp_path)


def test_debians_fashion_mnist(torch, tmp_path):
    if not os.path.isdir("/usr/share/datasets/fashion-mnist"):
        pytest.skip("Debian's dataset-fashion-mnist is not installed")
    made = datasets.FashionMNIST(tmp_path, train=False, download=True)
    again = datasets.FashionMNIST("/usr/share/datasets", train=False)
    assert len(made) == len(again) == 10000
    assert made.classes[made[0][1]] == "Ankle boot"
    assert torch.equal(made.targets.bincount(), torch.full((10,), 1000))


def test_emnist_has_splits(torch, tmp_path):
    images, _ = mnist(tmp_path / "EMNIST/raw", prefix="emnist-letters-", zipped=True)
    mnist(tmp_path / "gzip", 5, "test", prefix="emnist-byclass-")
    made = datasets.EMNIST(tmp_path, "letters")
    assert numpy.array_equal(numpy.asarray(made[3][0]), images[3])
    assert made.classes[made[3][1]] == "c" and len(made.classes) == 27
    other = datasets.EMNIST(tmp_path, split="byclass", train=False)
    assert len(other) == 5 and len(other.classes) == 62
    assert [len(names) for names in datasets.EMNIST.classes_split_dict.values()] == [
        *(62, 47, 47, 27, 10, 10)
    ]
    with pytest.raises(ValueError, match="'upper'.*'byclass', 'bymerge'"):
        datasets.EMNIST(tmp_path, "upper")


GOOD = idx(numpy.zeros((20, 28, 28), numpy.uint8))
HUGE = struct.pack(">HBBIII", 0, 8, 3, 1 << 31, 1 << 31, 1 << 31)
DAMAGED = {
    "empty": (b"", "begins with 0x,"),
    "another format": (b"\x89PNG" + GOOD, "begins with 0x89504e47"),
    "floats": (b"\0\0\x0d\3" + GOOD[4:], "0x00000d03.*0x00000803"),
    "two dimensions": (b"\0\0\x08\2" + GOOD[4:], "0x00000802"),
    "sizes cut": (GOOD[:9], "ends after 9 bytes"),
    "values cut": (GOOD[:-1], "15680 bytes.*at most 15679"),
    "too long": (GOOD + b"\0", "goes on after the 15680 bytes"),
    "hostile sizes": (HUGE, "2147483648 x 2147483648.*holds at most 0"),
    "fewer images": (idx(numpy.zeros((19, 28, 28), numpy.uint8)), "19 images.*20 labe"),
}
GZIPPED = {
    "no gzip": (GOOD, "Not a gzipped file"),
    "gzip cut": (gzip.compress(os.urandom(99) + GOOD)[:60], "begins with|gzip: "),
    "end cut": (gzip.compress(GOOD)[:-4], "gzip: .*end-of-stream"),
    "wrong checksum": (gzip.compress(GOOD)[:-8] + bytes(8), "gzip: CRC check failed"),
    "broken stream": (gzip.compress(GOOD)[:12] + b"\xff" * 60, "gzip: "),
    "hostile sizes": (gzip.compress(HUGE + bytes(1 << 20)), "2147483648.*at most"),
    "a short one": (gzip.compress(GOOD[:-1]), "ends after 15679 of 15680"),
    "a long one": (gzip.compress(GOOD + b"\0"), "goes on after"),
}


@pytest.mark.parametrize(
    "zipped, content, message",
    [(False, *case) for case in DAMAGED.values()]
    + [(True, *case) for case in GZIPPED.values()],
    ids=[*DAMAGED, *GZIPPED],
)
def test_damaged_images(tmp_path, zipped, content, message):
    mnist(tmp_path, zipped=zipped)
    name = "train-images-idx3-ubyte" + (".gz" if zipped else "")
    (tmp_path / name).write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match=message) as caught:
            datasets.MNIST(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert name in str(caught.value)


def test_labels_without_a_class(tmp_path):
    mnist(tmp_path)
    labels = numpy.arange(20).astype(numpy.uint8)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(labels))
    with pytest.raises(RuntimeError, match="label 19.*MNIST has classes 0 to 9"):
        datasets.MNIST(tmp_path)
