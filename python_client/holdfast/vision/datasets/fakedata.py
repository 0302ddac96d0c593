# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Random images, to try a program with."""

import holdfast

from ..pillow import pillow
from .vision import VisionDataset

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


class FakeData(VisionDataset):
    """`size` images of noise with random classes.

    `image_size`: (channels, height, width) with 1 to 4 channels. A sample, (PIL
    image, int) through the transforms, depends on its index and `random_offset`
    alone: it is drawn by the daemon from a generator of its own.
    """

    def __init__(
        self,
        size=1000,
        image_size=(3, 224, 224),
        num_classes=10,
        transform=None,
        target_transform=None,
        random_offset=0,
    ):
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.size = size
        self.num_classes = num_classes
        self.image_size = image_size
        self.random_offset = random_offset

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"{type(self).__name__} index out of range: {index} of {len(self)}"
            )
        channels, height, width = self.image_size
        if channels not in _MODES:
            raise ValueError(
                f"image_size must have 1 to 4 channels. Got {tuple(self.image_size)}."
            )
        generator = holdfast.Generator().manual_seed(index + self.random_offset)
        noise = holdfast.randn(channels, height, width, generator=generator)
        target = holdfast.randint(0, self.num_classes, (1,), generator=generator)
        # Whole numbers of both signs keep their lowest eight bits.
        pixels = noise.mul(255).to(holdfast.int32).bitwise_and(255)
        array = pixels.to(holdfast.uint8).permute(1, 2, 0).contiguous().numpy()
        image = pillow().fromarray(
            array[:, :, 0] if channels == 1 else array, mode=_MODES[channels]
        )
        return self._transformed(image, target.item())

    def __len__(self):
        return self.size
