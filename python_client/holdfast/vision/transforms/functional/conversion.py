# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Between images, arrays and tensors, and between ranges of values."""

import numpy as np

import holdfast

from .images import is_pillow, pillow, pixels

# The type of one channel's numbers in Pillow's modes that are not bytes.
_TYPES = {"I": np.int32, "I;16": np.int16, "F": np.float32}
_MODES = {
    np.dtype(np.uint8): "L",
    np.dtype(np.int16): "I;16",
    np.dtype(np.int32): "I",
    np.dtype(np.float32): "F",
}
_MODES_OF_CHANNELS = {
    2: ("LA",),
    3: ("RGB", "YCbCr", "HSV"),
    4: ("RGBA", "CMYK", "RGBX"),
}
_UNUSUAL = {2: "LA", 3: "RGB", 4: "RGBA"}


def _channels_first(array):
    if array.ndim == 2:
        array = array[:, :, None]
    return np.ascontiguousarray(array.transpose(2, 0, 1))


def _require_two_or_three(array):
    if array.ndim not in (2, 3):
        raise ValueError(
            f"pic should be 2/3 dimensional. Got {array.ndim} dimensions: shape "
            f"{tuple(array.shape)}"
        )


def to_tensor(pic):
    """A tensor [C, H, W] of a Pillow image or an array [H, W] or [H, W, C].

    Bytes 0..255 (and Pillow's modes of bytes and bits) become the default dtype in
    [0, 1]; other numbers stay as they are. All of it happens in NumPy, so that an
    image is one upload. TypeError, ValueError for anything else.
    """
    if is_pillow(pic):
        array = pixels(pic)
        if pic.mode in _TYPES:
            array = array.astype(_TYPES[pic.mode], copy=False)
        elif pic.mode == "1":
            array = array.astype(np.uint8) * np.uint8(255)
    elif isinstance(pic, np.ndarray):
        array = pic
        _require_two_or_three(array)
    else:
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    array = _channels_first(array)
    if array.dtype != np.uint8:
        return holdfast.from_numpy(array)
    dtype = holdfast.get_default_dtype()
    exact = np.float64 if dtype == holdfast.float64 else np.float32
    return holdfast.from_numpy(array.astype(exact) / exact(255)).to(dtype)


def pil_to_tensor(pic):
    """A tensor [C, H, W] of a Pillow image, its numbers as they are.

    TypeError for what is not one.
    """
    if not is_pillow(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    array = pixels(pic)
    if array.dtype == np.uint16:
        array = array.astype(np.int16)
    return holdfast.from_numpy(_channels_first(array))


def _largest(dtype):
    return 1 if dtype.is_floating_point else holdfast.iinfo(dtype).max


def convert_image_dtype(image, dtype=holdfast.float32):
    """A tensor image in another dtype, its range (0..1, or 0..the largest) with it.

    TypeError for what is no tensor; RuntimeError where the integers hold more
    digits than the floats have.
    """
    if not isinstance(image, holdfast.Tensor):
        raise TypeError(f"Input img should be Tensor Image. Got {type(image)}")
    if image.dtype == dtype:
        return image
    if image.is_floating_point():
        return _of_floats(image, dtype)
    before, after = _largest(image.dtype), _largest(dtype)
    if dtype.is_floating_point:
        return image.to(dtype) / before
    if before > after:
        factor = (before + 1) // (after + 1)
        return holdfast.div(image, factor, rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((after + 1) // (before + 1))


def _of_floats(image, dtype):
    if dtype.is_floating_point:
        return image.to(dtype)
    wide = holdfast.int32, holdfast.int64
    if dtype == wide[1] or image.dtype != holdfast.float64 and dtype in wide:
        raise RuntimeError(
            f"The cast from {image.dtype} to {dtype} cannot be performed safely."
        )
    # Just below one more than the largest: each integer has an equal share of [0, 1].
    return (image * (_largest(dtype) + 1.0 - 1e-3)).to(dtype)


def _as_array(pic, mode):
    """(array [H, W, C], dtype for messages) of a tensor [C, H, W] or an array."""
    if isinstance(pic, np.ndarray):
        _require_two_or_three(pic)
        return pic if pic.ndim == 3 else pic[:, :, None]
    if not isinstance(pic, holdfast.Tensor):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    _require_two_or_three(pic)
    tensor = pic if pic.dim() == 3 else pic.unsqueeze(0)
    if tensor.is_floating_point() and mode != "F":
        tensor = tensor.mul(255).to(holdfast.uint8)
    return tensor.detach().cpu().numpy().transpose(1, 2, 0)


def to_pil_image(pic, mode=None):
    """A Pillow image of a tensor [C, H, W] or [H, W], or an array [H, W, C] or [H, W].

    Floats in a tensor are of [0, 1] and become bytes, unless the mode is "F". The
    mode follows from the channels (1 to 4) and the dtype. TypeError, ValueError for
    other shapes, dtypes and modes.
    """
    array = _as_array(pic, mode)
    channels = array.shape[2]
    if channels > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {channels} channels.")
    image_of = pillow().fromarray
    if channels == 1:
        expected = _MODES.get(array.dtype)
        if mode is not None and mode != expected:
            raise ValueError(
                f"Incorrect mode ({mode}) supplied for input type {array.dtype}. "
                f"Should be {expected}"
            )
        if expected is None:
            raise TypeError(f"Input type {array.dtype} is not supported")
        return image_of(np.ascontiguousarray(array[:, :, 0]), mode=expected)
    if mode is not None and mode not in _MODES_OF_CHANNELS.get(channels, ()):
        raise ValueError(
            f"Only modes {_MODES_OF_CHANNELS.get(channels, ())} are supported for "
            f"{channels} channels. Got {mode}"
        )
    if array.dtype != np.uint8 or channels not in _UNUSUAL:
        raise TypeError(
            f"Input type {array.dtype} with {channels} channels is not supported"
        )
    return image_of(np.ascontiguousarray(array), mode=mode or _UNUSUAL[channels])


def _of_channels(values, like):
    """A number, or a tensor [C, 1, 1], to subtract or to divide by."""
    values = holdfast.as_tensor(values, dtype=like.dtype, device=like.device)
    return values.view(-1, 1, 1) if values.dim() == 1 else values


def normalize(tensor, mean, std, inplace=False):
    """(tensor - mean) / std by channel, of a float tensor [..., C, H, W].

    TypeError for other things, ValueError for other shapes and a std of zero.
    """
    if not isinstance(tensor, holdfast.Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.dim() < 3:
        raise ValueError(
            "Expected tensor to be a tensor image of size (..., C, H, W). Got "
            f"tensor.size() = {tuple(tensor.shape)}"
        )
    _require_no_zero(std, tensor.dtype)
    if not inplace:
        tensor = tensor.clone()
    return tensor.sub_(_of_channels(mean, tensor)).div_(_of_channels(std, tensor))


def _require_no_zero(std, dtype):
    # Python numbers need no reading back from the daemon.
    zero = (
        bool((std == 0).any())
        if isinstance(std, holdfast.Tensor)
        else bool(np.any(np.asarray(std) == 0))
    )
    if zero:
        raise ValueError(
            f"std evaluated to zero after conversion to {dtype}, leading to division "
            f"by zero: std={std}"
        )
