# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""CIFAR-10 and CIFAR-100: colour images of 32 x 32 in Python's pickles."""

import os

import numpy

from ..pillow import pillow
from .archive import md5_of, unpack
from .batch_pickle import read_pickle
from .vision import VisionDataset


class CIFAR10(VisionDataset):
    """Ten kinds of things: 50000 images to train with, 10000 to test.

    The files of the archive's "python version" are read from
    root/cifar-10-batches-py, and their MD5 sums are checked. `download=True`
    downloads nothing: it unpacks root/cifar-10-python.tar.gz where files are missing.
    RuntimeError where one is missing or damaged; no code in them is run.

    `data`: NumPy's array [n, 32, 32, 3] uint8, `targets`: list of int. A sample is
    (PIL image of mode "RGB", int), through the transforms.
    """

    base_folder = "cifar-10-batches-py"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {
        "filename": "batches.meta",
        "key": "label_names",
        "md5": "5ff9c542aee3614f3951f8cda6e48888",
    }

    def __init__(
        self, root, train=True, transform=None, target_transform=None, download=False
    ):
        super().__init__(
            os.fspath(root), transform=transform, target_transform=target_transform
        )
        self.train = train
        wanted = self.train_list if train else self.test_list
        files = [*wanted, (self.meta["filename"], self.meta["md5"])]
        if download:
            self._unpack([name for name, _ in files])
        self._check(files)
        self.classes = self._class_names()
        self.class_to_idx = {name: index for index, name in enumerate(self.classes)}
        batches = [self._batch(name) for name, _ in wanted]
        self.data = numpy.concatenate([pixels for pixels, _ in batches])
        self.targets = [label for _, labels in batches for label in labels]

    def _path(self, name):
        return os.path.join(self.root, self.base_folder, name)

    def _unpack(self, names):
        """Takes the files that are missing out of the archive, if that is there."""
        archive = os.path.join(self.root, self.filename)
        missing = [
            f"{self.base_folder}/{name}"
            for name in names
            if not os.path.isfile(self._path(name))
        ]
        if missing and os.path.isfile(archive):
            unpack(archive, self.tgz_md5, self.root, missing)

    def _check(self, wanted):
        """RuntimeError unless every file is there, with its sum (None: any)."""
        missing = [name for name, _ in wanted if not os.path.isfile(self._path(name))]
        if missing:
            raise RuntimeError(
                f"Dataset not found or corrupted: {', '.join(missing)} not in "
                f"{self._path('')}. Holdfast downloads nothing: put {self.filename} "
                f"into {self.root} and pass download=True, which unpacks it."
            )
        for name, md5 in wanted:
            if md5 is None:
                continue
            found = md5_of(self._path(name))
            if found != md5:
                raise RuntimeError(
                    f"Dataset not found or corrupted: {self._path(name)} has the MD5 "
                    f"sum {found}, where {md5} must be. Unpack {self.filename} again."
                )

    def _class_names(self):
        path = self._path(self.meta["filename"])
        names = read_pickle(path).get(self.meta["key"])
        texts = isinstance(names, list) and all(type(name) is str for name in names)
        if not texts:
            raise RuntimeError(f"{path} has no list of names {self.meta['key']!r}.")
        return names

    def _batch(self, name):
        """Pixels [n, 32, 32, 3] and n labels of one file."""
        path = self._path(name)
        entry = read_pickle(path)
        pixels = entry.get("data")
        labels = entry.get("labels", entry.get("fine_labels"))
        if not isinstance(pixels, numpy.ndarray) or not isinstance(labels, list):
            raise RuntimeError(f"{path} has no array 'data' with a list of labels.")
        if pixels.dtype != numpy.uint8 or pixels.shape != (len(labels), 3072):
            raise RuntimeError(
                f"{path} has pixels of shape {list(pixels.shape)} {pixels.dtype}, where"
                f" its {len(labels)} labels want [{len(labels)}, 3072] uint8."
            )
        count = len(self.classes)
        for label in labels:
            if type(label) is not int or not 0 <= label < count:
                raise RuntimeError(
                    f"{path} has the label {str(label)[:40]}, where classes are 0 to "
                    f"{count - 1}."
                )
        planes = pixels.reshape(-1, 3, 32, 32)
        return numpy.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels

    def __getitem__(self, index):
        image = pillow().fromarray(self.data[index])
        return self._transformed(image, self.targets[index])

    def __len__(self):
        return len(self.data)

    def extra_repr(self):
        return f"Split: {'Train' if self.train is True else 'Test'}"


class CIFAR100(CIFAR10):
    """A hundred kinds of things, in the files of root/cifar-100-python; see CIFAR10."""

    base_folder = "cifar-100-python"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {
        "filename": "meta",
        "key": "fine_label_names",
        "md5": "7973b15100ade9c7d40fb424638fde48",
    }
