# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Augmentations that draw which changes an image gets, and how strong ones.

AutoAugment (Cubuk et al. 2018, arXiv 1805.09501), RandAugment (Cubuk et al. 2019,
arXiv 1909.13719), TrivialAugment (Mueller and Hutter 2021, arXiv 2103.10158) and AugMix
(Hendrycks et al. 2019, arXiv 1912.02781). They take images of Pillow in the modes RGB
and L, and tensors of uint8 [..., 1 or 3, H, W].
"""

import math

import numpy as np

import holdfast
from holdfast import nn

from . import functional as F
from .draws import below
from .functional.images import InterpolationMode, interpolation_mode, is_image
from .policies import AutoAugmentPolicy, policy_table

# What one of the augmentations calls a change, by which factor or value.
_BY_FACTOR = {
    "Brightness": F.adjust_brightness,
    "Color": F.adjust_saturation,
    "Contrast": F.adjust_contrast,
    "Sharpness": F.adjust_sharpness,
}
_WITHOUT_MAGNITUDE = {
    "AutoContrast": F.autocontrast,
    "Equalize": F.equalize,
    "Invert": F.invert,
    "Identity": lambda img: img,
}


def _warped(img, rest, translate=(0, 0), shear=(0.0, 0.0), center=None):
    return F.affine(img, 0.0, translate, 1.0, shear, *rest, center=center)


def _changed(img, name, magnitude, interpolation, fill):
    """The image after the change `name`."""
    rest = interpolation, fill
    if name in _BY_FACTOR:
        return _BY_FACTOR[name](img, 1.0 + magnitude)
    if name in _WITHOUT_MAGNITUDE:
        return _WITHOUT_MAGNITUDE[name](img)
    slope = math.degrees(math.atan(magnitude))
    if name == "ShearX":
        return _warped(img, rest, shear=(slope, 0.0), center=(0, 0))
    if name == "ShearY":
        return _warped(img, rest, shear=(0.0, slope), center=(0, 0))
    if name == "TranslateX":
        return _warped(img, rest, (int(magnitude), 0))
    if name == "TranslateY":
        return _warped(img, rest, (0, int(magnitude)))
    if name == "Rotate":
        return F.rotate(img, magnitude, interpolation, fill=fill)
    if name == "Posterize":
        return F.posterize(img, int(magnitude))
    if name == "Solarize":
        return F.solarize(img, magnitude)
    raise ValueError(f"The provided operator {name} is not recognized.")


def _steps(low, high, count):
    return np.linspace(low, high, count, dtype=np.float32)


def _bits(most, fewer, count):
    """From `most` bits down to `fewer` fewer."""
    return most - (np.arange(count) / ((count - 1) / fewer)).round().astype(int)


_NONE = np.float32(0)  # of changes without a magnitude


def _space(num_bins, shear, shifts, angle, factor, bits):
    """Change -> (its magnitudes, whether a sign is drawn); shifts: (along x, along y),
    bits: as for _bits()."""
    reach = _steps(0.0, shear, num_bins), True
    change = _steps(0.0, factor, num_bins), True
    return {
        "Identity": (_NONE, False),
        "ShearX": reach,
        "ShearY": reach,
        "TranslateX": (_steps(0.0, shifts[0], num_bins), True),
        "TranslateY": (_steps(0.0, shifts[1], num_bins), True),
        "Rotate": (_steps(0.0, angle, num_bins), True),
        "Brightness": change,
        "Color": change,
        "Contrast": change,
        "Sharpness": change,
        "Posterize": (_bits(*bits, num_bins), False),
        "Solarize": (_steps(255.0, 0.0, num_bins), False),
        "AutoContrast": (_NONE, False),
        "Equalize": (_NONE, False),
    }


def _space_of_papers(num_bins, image_size):
    """The magnitudes of AutoAugment and RandAugment for an image (height, width)."""
    height, width = image_size
    # The search was on images of 331 pixels, which moved by up to 150.
    shifts = 150.0 / 331.0 * width, 150.0 / 331.0 * height
    return _space(num_bins, 0.3, shifts, 30.0, 0.9, (8, 4))


class _Augmentation(nn.Module):
    """What the four have in common."""

    # The arguments that __repr__ shows.
    _shown = ()

    def __init__(self, interpolation, fill):
        super().__init__()
        self.interpolation = interpolation_mode(interpolation)
        self.fill = fill

    def _size(self, img):
        """(height, width)"""
        return tuple(F.get_dimensions(img)[1:])

    def _change(self, img, name, magnitude):
        return _changed(img, name, magnitude, self.interpolation, self.fill)

    def _draw(self, space, place):
        """(a change, its magnitude), of the space; place(count): which magnitude."""
        name = list(space)[below(len(space))]
        magnitudes, signed = space[name]
        if magnitudes.ndim == 0:
            return name, 0.0
        magnitude = float(magnitudes[place(len(magnitudes))].item())
        return name, -magnitude if signed and below(2) else magnitude

    def __repr__(self):
        shown = (f"{name}={getattr(self, name)}" for name in self._shown)
        return f"{type(self).__name__}({', '.join(shown)})"


class AutoAugment(_Augmentation):
    """A pair of changes of a policy, drawn for each image; each change has a
    probability and a magnitude. interpolation and fill as for functional.affine."""

    _shown = "policy", "fill"

    def __init__(
        self,
        policy=AutoAugmentPolicy.IMAGENET,
        interpolation=InterpolationMode.NEAREST,
        fill=None,
    ):
        super().__init__(interpolation, fill)
        self.policy = policy
        self.policies = policy_table(policy)

    def _augmentation_space(self, num_bins, image_size):
        space = _space_of_papers(num_bins, image_size)
        del space["Identity"]
        space["Invert"] = _NONE, False
        return space

    @staticmethod
    def get_params(transform_num):
        """(which of transform_num pairs, the two's numbers of [0, 1), their signs)."""
        pair = below(transform_num)
        return pair, holdfast.rand(2), holdfast.randint(2, (2,))

    def forward(self, img):
        pair, probabilities, signs = self.get_params(len(self.policies))
        probabilities, signs = probabilities.tolist(), signs.tolist()
        for i, (name, p, place) in enumerate(self.policies[pair]):
            if probabilities[i] > p:
                continue
            magnitudes, signed = self._augmentation_space(10, self._size(img))[name]
            magnitude = 0.0 if place is None else float(magnitudes[place].item())
            if signed and signs[i] == 0:
                magnitude = -magnitude
            img = self._change(img, name, magnitude)
        return img


class RandAugment(_Augmentation):
    """num_ops changes, drawn for each image, all of one magnitude: the one numbered
    `magnitude` of num_magnitude_bins."""

    _shown = "num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill"

    def __init__(
        self,
        num_ops=2,
        magnitude=9,
        num_magnitude_bins=31,
        interpolation=InterpolationMode.NEAREST,
        fill=None,
    ):
        super().__init__(interpolation, fill)
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def _augmentation_space(self, num_bins, image_size):
        return _space_of_papers(num_bins, image_size)

    def forward(self, img):
        for _ in range(self.num_ops):
            space = self._augmentation_space(self.num_magnitude_bins, self._size(img))
            img = self._change(img, *self._draw(space, lambda count: self.magnitude))
        return img


class TrivialAugmentWide(_Augmentation):
    """One change, drawn for each image, of a magnitude that is drawn, too."""

    _shown = "num_magnitude_bins", "interpolation", "fill"

    def __init__(
        self,
        num_magnitude_bins=31,
        interpolation=InterpolationMode.NEAREST,
        fill=None,
    ):
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def _augmentation_space(self, num_bins):
        return _space(num_bins, 0.99, (32.0, 32.0), 135.0, 0.99, (8, 6))

    def forward(self, img):
        space = self._augmentation_space(self.num_magnitude_bins)
        return self._change(img, *self._draw(space, below))


class AugMix(_Augmentation):
    """A mixture of the image and of mixture_width chains of changes of it.

    severity: from which of ten magnitudes is drawn, 1 to 10; chain_depth: changes of a
    chain, drawn from 1 to 3 where not positive; alpha: of the Dirichlet and the Beta
    distribution that weights are drawn from; all_ops: with brightness, colour,
    contrast and sharpness. A batch of tensors has one chain, and weights for each.
    """

    _shown = (
        "severity",
        "mixture_width",
        "chain_depth",
        "alpha",
        "all_ops",
        "interpolation",
        "fill",
    )

    def __init__(
        self,
        severity=3,
        mixture_width=3,
        chain_depth=-1,
        alpha=1.0,
        all_ops=True,
        interpolation=InterpolationMode.BILINEAR,
        fill=None,
    ):
        super().__init__(interpolation, fill)
        if not 1 <= severity <= 10:
            raise ValueError(
                f"The severity must be between [1, 10]. Got {severity} instead."
            )
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops

    def _augmentation_space(self, num_bins, image_size):
        height, width = image_size
        space = _space(num_bins, 0.3, (width / 3.0, height / 3.0), 30.0, 0.9, (4, 4))
        del space["Identity"]
        for name in _BY_FACTOR:
            factor = space.pop(name)
            if self.all_ops:
                space[name] = factor
        return space

    def _chain(self, img, space):
        depth = self.chain_depth if self.chain_depth > 0 else 1 + below(3)
        for _ in range(depth):
            change = self._draw(space, lambda count: below(self.severity))
            img = self._change(img, *change)
        return img

    def _weights(self, count):
        """[count, 1 + mixture_width]: of each image itself and of its chains, sum 1."""
        alpha = holdfast.tensor([float(self.alpha)])
        kept = holdfast._sample_dirichlet(alpha.expand(count, 2))
        chains = holdfast._sample_dirichlet(alpha.expand(count, self.mixture_width))
        return holdfast.cat([kept[:, :1], chains * kept[:, 1:]], 1)

    def forward(self, orig_img):
        of_pillow = is_image(orig_img)
        img = F.pil_to_tensor(orig_img) if of_pillow else orig_img
        space = self._augmentation_space(10, self._size(img))
        batch = img if img.dim() > 3 else img.unsqueeze(0)
        weights = self._weights(len(batch)).to(batch.device)
        weights = weights.view(*weights.shape, *(1,) * (batch.dim() - 1)).unbind(1)
        mix = weights[0] * batch
        for weight in weights[1:]:
            mix = mix + weight * self._chain(batch, space)
        mix = mix.reshape(tuple(img.shape)).to(img.dtype)
        return F.to_pil_image(mix) if of_pillow else mix
