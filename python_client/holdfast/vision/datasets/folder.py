# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Data sets of one folder for each class."""

import os

from ..pillow import pillow
from .vision import VisionDataset

IMG_EXTENSIONS = tuple(
    ".jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp".split()  # as torchvision's
)


def has_file_allowed_extension(filename, extensions):
    """Whether the name ends with the extension, or one of them (lower case)."""
    endings = extensions if isinstance(extensions, str) else tuple(extensions)
    return filename.lower().endswith(endings)


def is_image_file(filename):
    """Whether the name ends as images' do (IMG_EXTENSIONS)."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory):
    """Names of the folders in `directory`, sorted, and {name: number}.

    FileNotFoundError where there are none.
    """
    with os.scandir(directory) as entries:
        classes = sorted(entry.name for entry in entries if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: number for number, name in enumerate(classes)}


def make_dataset(
    directory,
    class_to_idx=None,
    extensions=None,
    is_valid_file=None,
    allow_empty=False,
):
    """[(path, number of its class)], by class, folder and name, links followed.

    Either `extensions` or `is_valid_file(path)` chooses the files, else ValueError.
    FileNotFoundError for classes without a file; `allow_empty`: True lets all be
    so, or a list of classes that may.
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    elif not class_to_idx:
        raise ValueError(
            "'class_to_index' must have at least one entry to collect any samples."
        )
    if (extensions is None) == (is_valid_file is None):
        raise ValueError(
            "Both extensions and is_valid_file cannot be None or not None at the same "
            "time"
        )
    if extensions is not None:

        def is_valid_file(path):
            return has_file_allowed_extension(path, extensions)

    samples, empty = [], []
    for name in sorted(class_to_idx):
        found = _files(os.path.join(directory, name), is_valid_file)
        samples += [(path, class_to_idx[name]) for path in found]
        if not found:
            empty.append(name)
    if empty and not allow_empty:
        raise FileNotFoundError(
            f"Found no valid file for the classes {', '.join(empty)}. "
            + _supported(extensions)
        )
    return samples


def _files(folder, is_valid_file):
    paths = (
        os.path.join(place, name)
        for place, _, names in sorted(os.walk(folder, followlinks=True))
        for name in sorted(names)
    )
    return [path for path in paths if is_valid_file(path)]


def _supported(extensions):
    if extensions is None:
        return ""
    names = extensions if isinstance(extensions, str) else ", ".join(extensions)
    return f"Supported extensions are: {names}"


def default_loader(path):
    """The image in a file, as a PIL image of mode "RGB"."""
    # Opened here, so that the file is closed when its pixels are read.
    with open(path, "rb") as file:
        return pillow().open(file).convert("RGB")


class DatasetFolder(VisionDataset):
    """Samples that `loader(path)` makes of files root/CLASS/.../NAME.

    `extensions` or `is_valid_file` chooses the files, see make_dataset. `classes`:
    sorted names, `class_to_idx`: their numbers, `samples`: [(path, number)],
    `targets`: [number]. A subclass may define `find_classes` its own way.
    """

    def __init__(
        self,
        root,
        loader,
        extensions=None,
        transform=None,
        target_transform=None,
        is_valid_file=None,
        allow_empty=False,
    ):
        super().__init__(
            os.fspath(root), transform=transform, target_transform=target_transform
        )
        classes, class_to_idx = self.find_classes(self.root)
        # Older subclasses' make_dataset knows no such argument.
        empty = {"allow_empty": allow_empty} if allow_empty else {}
        samples = self.make_dataset(
            self.root, class_to_idx, extensions, is_valid_file, **empty
        )
        self.loader = loader
        self.extensions = extensions
        self.classes = classes
        self.class_to_idx = class_to_idx
        self.samples = samples
        self.targets = [target for _, target in samples]

    @staticmethod
    def make_dataset(
        directory, class_to_idx, extensions=None, is_valid_file=None, allow_empty=False
    ):
        """See the function of this name; `class_to_idx` must be given."""
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(
            directory, class_to_idx, extensions, is_valid_file, allow_empty
        )

    def find_classes(self, directory):
        """See the function of this name."""
        return find_classes(directory)

    def __getitem__(self, index):
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self):
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images in one folder for each class: root/CLASS/.../NAME.png.

    Files that end as images' do, or that `is_valid_file` chooses. A sample is (PIL
    image of mode "RGB", int), through the transforms; see DatasetFolder.
    """

    def __init__(
        self,
        root,
        transform=None,
        target_transform=None,
        loader=default_loader,
        is_valid_file=None,
        allow_empty=False,
    ):
        super().__init__(
            root,
            loader,
            IMG_EXTENSIONS if is_valid_file is None else None,
            transform=transform,
            target_transform=target_transform,
            is_valid_file=is_valid_file,
            allow_empty=allow_empty,
        )
        self.imgs = self.samples
