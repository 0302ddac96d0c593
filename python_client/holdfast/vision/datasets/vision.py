# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What all image data sets have: a root, transforms and how they print."""

import os

from holdfast.utils.data import Dataset


class VisionDataset(Dataset):
    """Base of image data sets: subclasses define `__getitem__` and `__len__`.

    `transforms` is called with (image, target) and returns both; `transform` and
    `target_transform` get one each. ValueError where both ways are given.
    """

    _repr_indent = 4

    def __init__(
        self, root=None, transforms=None, transform=None, target_transform=None
    ):
        single = transform is not None or target_transform is not None
        if transforms is not None and single:
            raise ValueError(
                "Only transforms or transform/target_transform can be passed as "
                "argument"
            )
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        self.transform = transform
        self.target_transform = target_transform
        if single:
            transforms = StandardTransform(transform, target_transform)
        self.transforms = transforms

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __len__")

    def __repr__(self):
        lines = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"Root location: {self.root}")
        lines += self.extra_repr().splitlines()
        if getattr(self, "transforms", None) is not None:
            lines.append(repr(self.transforms))
        indent = " " * self._repr_indent
        return "\n".join(
            [f"Dataset {type(self).__name__}", *(indent + line for line in lines)]
        )

    def extra_repr(self):
        """Further lines for `repr`."""
        return ""

    def _transformed(self, image, target):
        """A sample as the program wants it."""
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class StandardTransform:
    """Calls one function for the image and one for the target; None leaves it."""

    def __init__(self, transform=None, target_transform=None):
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input, target):
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self):
        lines = [type(self).__name__]
        for head, transform in (
            ("Transform: ", self.transform),
            ("Target transform: ", self.target_transform),
        ):
            if transform is not None:
                first, *rest = repr(transform).splitlines()
                lines.append(head + first)
                lines += [" " * len(head) + line for line in rest]
        return "\n".join(lines)
