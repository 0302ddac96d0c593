# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms between images and tensors, and of their numbers."""

import holdfast
from holdfast import nn

from . import functional as F


class ToTensor:
    """An image or an array [H, W, C] as a tensor [C, H, W], bytes as [0, 1]."""

    def __call__(self, pic):
        return F.to_tensor(pic)

    def __repr__(self):
        return f"{type(self).__name__}()"


class PILToTensor:
    """An image as a tensor [C, H, W] of the same numbers."""

    def __call__(self, pic):
        return F.pil_to_tensor(pic)

    def __repr__(self):
        return f"{type(self).__name__}()"


class ToPILImage:
    """A tensor [C, H, W] or an array [H, W, C] as an image of Pillow.

    The mode follows from the channels and the dtype where it is None.
    """

    def __init__(self, mode=None):
        self.mode = mode

    def __call__(self, pic):
        return F.to_pil_image(pic, self.mode)

    def __repr__(self):
        mode = "" if self.mode is None else f"mode={self.mode}"
        return f"{type(self).__name__}({mode})"


class ConvertImageDtype(nn.Module):
    """A tensor image in another dtype, its range with it."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, image):
        return F.convert_image_dtype(image, self.dtype)


class Normalize(nn.Module):
    """(tensor - mean) / std by channel, of a float tensor [..., C, H, W]."""

    def __init__(self, mean, std, inplace=False):
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor):
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self):
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class LinearTransformation(nn.Module):
    """Whitening: the flattened image less mean_vector [D], times a matrix [D, D].

    The image is a tensor [..., C, H, W] with D = C * H * W.
    """

    def __init__(self, transformation_matrix, mean_vector):
        super().__init__()
        shape = tuple(transformation_matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(
                f"transformation_matrix should be square. Got {list(shape)} "
                "rectangular matrix."
            )
        if mean_vector.shape[0] != shape[0]:
            raise ValueError(
                f"mean_vector should have the same length {mean_vector.shape[0]} as "
                f"any one of the dimensions of the transformation_matrix {shape}"
            )
        self.transformation_matrix = transformation_matrix
        self.mean_vector = mean_vector

    def forward(self, tensor):
        if not isinstance(tensor, holdfast.Tensor):
            raise TypeError(f"tensor should be Tensor Image. Got {type(tensor)}")
        shape, length = tuple(tensor.shape), self.transformation_matrix.shape[0]
        values = 1
        for n in shape[-3:]:
            values *= n
        if values != length:
            raise ValueError(
                "Input tensor and transformation matrix have incompatible shape: "
                f"{shape[-3:]} has {values} values, the matrix {length} rows"
            )
        flat = tensor.reshape(-1, length) - self.mean_vector
        return holdfast.mm(flat, self.transformation_matrix).reshape(shape)

    def __repr__(self):
        return (
            f"{type(self).__name__}(transformation_matrix="
            f"{self.transformation_matrix.tolist()}, mean_vector="
            f"{self.mean_vector.tolist()})"
        )
