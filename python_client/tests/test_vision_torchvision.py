# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The same files read by torchvision, where it is installed."""

import hashlib

import numpy
import pytest
from vision_files import cifar_batch, dumped, mnist

from holdfast.vision import datasets

peer = pytest.importorskip("torchvision").datasets


def assert_equal_sets(ours, theirs):
    assert len(ours) == len(theirs) and repr(ours) == repr(theirs)
    assert (ours.classes, ours.class_to_idx) == (theirs.classes, theirs.class_to_idx)
    for i in range(len(theirs)):
        (image, target), (their_image, their_target) = ours[i], theirs[i]
        assert (image.mode, target) == (their_image.mode, their_target)
        assert numpy.array_equal(numpy.asarray(image), numpy.asarray(their_image))


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "KMNIST"])
@pytest.mark.parametrize("train", [True, False])
def test_mnist_family(torch, tmp_path, name, train):
    for part in ("train", "t10k"):
        mnist(tmp_path / name / "raw", 12, part)
    sets = [
        getattr(package, name)(str(tmp_path), train, transform=None)
        for package in (datasets, peer)
    ]
    assert_equal_sets(*sets)
    for kind in ("data", "targets"):
        ours, theirs = (getattr(made, kind) for made in sets)
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        assert numpy.array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("split", datasets.EMNIST.splits)
def test_emnist(torch, tmp_path, split):
    for part in ("train", "test"):
        mnist(tmp_path / "EMNIST/raw", 10, part, prefix=f"emnist-{split}-")
    sets = [
        package.EMNIST(str(tmp_path), split, train=False)
        for package in (datasets, peer)
    ]
    assert_equal_sets(*sets)


@pytest.mark.parametrize("python2", [True, False], ids=["python2", "python3"])
@pytest.mark.parametrize(
    "name, key, names_key, classes",
    [
        ("CIFAR10", "labels", "label_names", 10),
        ("CIFAR100", "fine_labels", "fine_label_names", 100),
    ],
)
def test_cifar(tmp_path, name, key, names_key, classes, python2):
    ours, theirs = getattr(datasets, name), getattr(peer, name)
    for attribute in ("base_folder", "filename", "tgz_md5", "train_list", "test_list"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert ours.meta == theirs.meta
    folder = tmp_path / ours.base_folder
    folder.mkdir()
    meta = dumped({names_key: [f"kind {i}" for i in range(classes)]}, python2)
    batch = dumped(cifar_batch(9, classes, key, 3), python2)
    (folder / "m").write_bytes(meta)
    (folder / "b").write_bytes(batch)
    sums = {
        "train_list": [["b", hashlib.md5(batch).hexdigest()]],
        "test_list": [],
        "meta": {
            "filename": "m",
            "key": names_key,
            "md5": hashlib.md5(meta).hexdigest(),
        },
    }
    sets = [type(name, (kind,), sums)(str(tmp_path)) for kind in (ours, theirs)]
    assert_equal_sets(*sets)
    assert numpy.array_equal(sets[0].data, sets[1].data)
    assert sets[0].targets == sets[1].targets


def test_image_folder(tmp_path):
    from PIL import Image

    draw = numpy.random.default_rng(1)
    for name in ("b/z.png", "b/a/y.bmp", "a/x.JPEG", "a/.hidden.png", "c/w.webp"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 256, (5, 4, 3), numpy.uint8)
        Image.fromarray(pixels).save(path)
    sets = [package.ImageFolder(str(tmp_path)) for package in (datasets, peer)]
    assert_equal_sets(*sets)
    assert sets[0].samples == sets[1].samples
    assert sets[0].targets == sets[1].targets
