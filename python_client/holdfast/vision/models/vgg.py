# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""VGG (Simonyan and Zisserman, "Very deep convolutional networks for large-scale
image recognition", 2014), configurations A, B, D and E."""

import holdfast
from holdfast import nn
from holdfast.vision.models.zoo import register

_CHANNELS = (64, 128, 256, 512, 512)  # of the stages; each ends in pooling
_DEPTHS = {  # convolutions of each stage
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}


def make_features(depths, batch_norm=False):
    """The convolutions: [N, 3, H, W] to [N, 512, H/32, W/32]."""
    layers, before = [], 3
    for channels, depth in zip(_CHANNELS, depths):
        for _ in range(depth):
            layers.append(nn.Conv2d(before, channels, 3, padding=1))
            if batch_norm:
                layers.append(nn.BatchNorm2d(channels))
            layers.append(nn.ReLU(inplace=True))
            before = channels
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers)


class VGG(nn.Module):
    """[N, 3, H, W] with H, W >= 32 (made for 224) to [N, num_classes]."""

    def __init__(self, features, num_classes=1000, init_weights=True, dropout=0.5):
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            self.apply(self._start)

    @staticmethod
    def _start(module):
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.constant_(module.weight, 1)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 0.01)
        else:
            return
        if module.bias is not None:
            nn.init.constant_(module.bias, 0)

    def forward(self, x):
        x = self.avgpool(self.features(x))
        return self.classifier(holdfast.flatten(x, 1))


def _vgg(layers, batch_norm, kwargs):
    return VGG(make_features(_DEPTHS[layers], batch_norm), **kwargs)


@register("VGG11")
def vgg11(**kwargs):
    """VGG of 11 layers with weights; `weights`: see zoo."""
    return _vgg(11, False, kwargs)


@register("VGG11_BN")
def vgg11_bn(**kwargs):
    """VGG of 11 layers, with batch norm; `weights`: see zoo."""
    return _vgg(11, True, kwargs)


@register("VGG13")
def vgg13(**kwargs):
    """VGG of 13 layers; `weights`: see zoo."""
    return _vgg(13, False, kwargs)


@register("VGG13_BN")
def vgg13_bn(**kwargs):
    """VGG of 13 layers, with batch norm; `weights`: see zoo."""
    return _vgg(13, True, kwargs)


@register("VGG16")
def vgg16(**kwargs):
    """VGG of 16 layers; `weights`: see zoo."""
    return _vgg(16, False, kwargs)


@register("VGG16_BN")
def vgg16_bn(**kwargs):
    """VGG of 16 layers, with batch norm; `weights`: see zoo."""
    return _vgg(16, True, kwargs)


@register("VGG19")
def vgg19(**kwargs):
    """VGG of 19 layers; `weights`: see zoo."""
    return _vgg(19, False, kwargs)


@register("VGG19_BN")
def vgg19_bn(**kwargs):
    """VGG of 19 layers, with batch norm; `weights`: see zoo."""
    return _vgg(19, True, kwargs)
