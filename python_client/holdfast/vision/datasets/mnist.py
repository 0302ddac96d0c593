# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The MNIST family: grey images of 28 x 28 in idx files."""

import os
import string
import warnings

from ..pillow import pillow
from .hosted import hosted_attribute
from .idx import read_idx
from .vision import VisionDataset


class MNIST(VisionDataset):
    """Handwritten digits: 60000 images to train with, 10000 to test.

    The files (train-images-idx3-ubyte and so on, plain or .gz) are read from
    root/MNIST/raw, root/MNIST or root. `download=True` downloads nothing: it is
    taken where the files are there. RuntimeError where they are missing or damaged.

    `data`: tensor [n, 28, 28] uint8, `targets`: tensor [n] int64, on the daemon from
    when they are first asked for: TensorDataset(set.data, set.targets) is a data set
    that lives there. A sample is (PIL image of mode "L", int), through the
    transforms; reading one asks the daemon nothing.
    """

    classes = [
        f"{digit} - {name}"
        for digit, name in enumerate(
            "zero one two three four five six seven eight nine".split()
        )
    ]
    _other_folders = ()  # below root
    _system_folder = None  # where a Debian package has the files
    _package = None

    data = hosted_attribute("data", "The images: tensor [n, 28, 28] uint8.")
    targets = hosted_attribute("targets", "The numbers of their classes: int64 [n].")

    def __init__(
        self, root, train=True, transform=None, target_transform=None, download=False
    ):
        super().__init__(
            os.fspath(root), transform=transform, target_transform=target_transform
        )
        self.train = train
        folder = self._find(download)
        images, labels = (self._path(folder, name) for name in self._files())
        self.data, self.targets = self._read(images, labels)

    def _read(self, images, labels):
        data, targets = read_idx(images, 3), read_idx(labels, 1)
        if len(data) != len(targets):
            raise RuntimeError(
                f"{images} has {len(data)} images, {labels} has {len(targets)} labels. "
                "They are no pair: get both files again."
            )
        classes = len(self._class_names())
        if len(targets) and targets.max() >= classes:
            raise RuntimeError(
                f"{labels} has the label {targets.max()}, where {type(self).__name__} "
                f"has classes 0 to {classes - 1}. Get the file again."
            )
        return data, targets.astype("int64")

    def _class_names(self):
        return self.classes

    def _files(self):
        """Names of the files with the images and with the labels, without .gz."""
        part = "train" if self.train else "t10k"
        return f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"

    @staticmethod
    def _path(folder, name):
        """The file's path, or that of its .gz; None where there is neither."""
        paths = [os.path.join(folder, name + ending) for ending in ("", ".gz")]
        return next(filter(os.path.isfile, paths), None)

    def _folders(self):
        own = os.path.join(self.root, type(self).__name__)
        others = [os.path.join(self.root, name) for name in self._other_folders]
        return [self.raw_folder, own, self.root, *others]

    def _find(self, download):
        """The folder that has both files."""
        folders = self._folders()
        if download and self._system_folder:
            folders.append(self._system_folder)
        names = self._files()
        for folder in folders:
            if all(self._path(folder, name) for name in names):
                return folder
        raise RuntimeError(
            f"Dataset not found: {' and '.join(names)}, plain or .gz, are not in "
            f"{', '.join(folders)}. Holdfast downloads nothing: put the files into "
            f"{self.raw_folder}{self._hint()}."
        )

    def _hint(self):
        if self._package is None:
            return ""
        return f", or apt install {self._package} and pass download=True"

    def __getitem__(self, index):
        hosted = vars(self)
        image = hosted["_hosted_data"].array[index]
        target = int(hosted["_hosted_targets"].array[index])
        return self._transformed(pillow().fromarray(image, mode="L"), target)

    def __len__(self):
        return len(vars(self)["_hosted_data"].array)

    def extra_repr(self):
        return f"Split: {'Train' if self.train is True else 'Test'}"

    @property
    def raw_folder(self):
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def processed_folder(self):
        return os.path.join(self.root, type(self).__name__, "processed")

    @property
    def class_to_idx(self):
        return {name: index for index, name in enumerate(self.classes)}


def _renamed(old, new):
    def get(self):
        warnings.warn(f"{old} has been renamed {new}", stacklevel=2)
        return getattr(self, new)

    return property(get, doc=f"The old name of `{new}`.")


for _old in ("train_data", "test_data"):
    setattr(MNIST, _old, _renamed(_old, "data"))
for _old in ("train_labels", "test_labels"):
    setattr(MNIST, _old, _renamed(_old, "targets"))


class FashionMNIST(MNIST):
    """Ten kinds of clothes, in MNIST's sizes and files; see MNIST.

    Also read from root/fashion-mnist, and with `download=True` from where Debian's
    package dataset-fashion-mnist has them.
    """

    classes = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]
    _other_folders = ("fashion-mnist",)
    _system_folder = "/usr/share/datasets/fashion-mnist"
    _package = "dataset-fashion-mnist"


class KMNIST(MNIST):
    """Ten handwritten Hiragana, in MNIST's sizes and files; see MNIST."""

    classes = "o ki su tsu na ha ma ya re wo".split()


_CHARACTERS = sorted(string.digits + string.ascii_letters)
# Letters whose two cases look alike count as one class, the upper case.
_MERGED = [name for name in _CHARACTERS if name not in "cijklmopsuvwxyz"]


class EMNIST(MNIST):
    """Handwritten digits and letters in six splits; see MNIST.

    `split`: "byclass" (62 classes), "bymerge" and "balanced" (47), "letters" (26,
    numbered from 1), "digits" or "mnist" (10). The files, such as
    emnist-letters-train-images-idx3-ubyte, are also read from root/gzip and
    root/EMNIST/raw/gzip. As they are written, images lie on their side. ValueError
    for another split.
    """

    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    classes_split_dict = {
        "byclass": _CHARACTERS,
        "bymerge": _MERGED,
        "balanced": _MERGED,
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": list(string.digits),
        "mnist": list(string.digits),
    }
    _other_folders = ("gzip", os.path.join("EMNIST", "raw", "gzip"))

    def __init__(self, root, split, **kwargs):
        if split not in self.splits:
            raise ValueError(
                f"Unknown value '{split}' for argument split. Valid values are "
                f"{{{str(self.splits)[1:-1]}}}."
            )
        self.split = split
        super().__init__(root, **kwargs)
        self.classes = self._class_names()

    def _class_names(self):
        return self.classes_split_dict[self.split]

    def _files(self):
        start = f"emnist-{self.split}-{'train' if self.train else 'test'}"
        return f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte"
