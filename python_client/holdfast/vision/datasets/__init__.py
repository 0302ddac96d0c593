# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Image data sets read from local files, with torchvision's API.

Nothing is downloaded: where files are missing, the error says which and where they
are looked for.
"""

from holdfast.missing import module_getattr

from .cifar import CIFAR10, CIFAR100
from .fakedata import FakeData
from .folder import DatasetFolder, ImageFolder
from .mnist import EMNIST, MNIST, FashionMNIST, KMNIST
from .vision import VisionDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "DatasetFolder",
    "EMNIST",
    "FakeData",
    "FashionMNIST",
    "ImageFolder",
    "KMNIST",
    "MNIST",
    "VisionDataset",
]

__getattr__ = module_getattr("torchvision.datasets")
