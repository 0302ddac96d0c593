# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Residual networks (He et al., "Deep residual learning for image recognition", 2015),
with strides at the 3x3 convolutions; wide ones (Zagoruyko and Komodakis, 2016) and
ResNeXt (Xie et al., 2016)."""

import holdfast
from holdfast import nn
from holdfast.vision.models.zoo import register


def _conv3x3(before, after, stride=1, groups=1, dilation=1):
    return nn.Conv2d(
        before, after, 3, stride, dilation, dilation, groups=groups, bias=False
    )


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(
        self,
        inplanes,
        planes,
        stride=1,
        downsample=None,
        groups=1,
        base_width=64,
        dilation=1,
        norm_layer=None,
    ):
        super().__init__()
        if groups != 1 or base_width != 64 or dilation != 1:
            raise ValueError(
                "BasicBlock has groups=1, base_width=64 and dilation=1. Got "
                f"{groups}, {base_width}, {dilation}."
            )
        norm = norm_layer or nn.BatchNorm2d
        self.conv1 = _conv3x3(inplanes, planes, stride)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv3x3(planes, planes)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + shortcut)


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut; four times as many channels
    come out as there are planes."""

    expansion = 4

    def __init__(
        self,
        inplanes,
        planes,
        stride=1,
        downsample=None,
        groups=1,
        base_width=64,
        dilation=1,
        norm_layer=None,
    ):
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64)) * groups
        after = planes * self.expansion
        self.conv1 = nn.Conv2d(inplanes, width, 1, bias=False)
        self.bn1 = norm(width)
        self.conv2 = _conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm(width)
        self.conv3 = nn.Conv2d(width, after, 1, bias=False)
        self.bn3 = norm(after)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + shortcut)


class ResNet(nn.Module):
    """[N, 3, H, W] to [N, num_classes]; `layers` are the blocks of the four stages.

    `replace_stride_with_dilation`: three bools, for the last three stages.
    """

    def __init__(
        self,
        block,
        layers,
        num_classes=1000,
        zero_init_residual=False,
        groups=1,
        width_per_group=64,
        replace_stride_with_dilation=None,
        norm_layer=None,
    ):
        super().__init__()
        dilated = replace_stride_with_dilation or (False, False, False)
        if len(dilated) != 3:
            raise ValueError(
                "replace_stride_with_dilation should be None or a 3-element tuple, "
                f"got {replace_stride_with_dilation}"
            )
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes, self.dilation = 64, 1
        self.groups, self.base_width = groups, width_per_group
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilated[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilated[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilated[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._start(zero_init_residual)

    def _start(self, zero_init_residual):
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(
                    module.weight, mode="fan_out", nonlinearity="relu"
                )
            elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
        if not zero_init_residual:
            return
        # Each block starts as its shortcut (Goyal et al. 2017).
        for module in self.modules():
            if isinstance(module, (BasicBlock, Bottleneck)):
                last = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                nn.init.constant_(last.weight, 0)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        before = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        after, downsample = planes * block.expansion, None
        if stride != 1 or self.inplanes != after:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, after, 1, stride, bias=False),
                self._norm_layer(after),
            )
        made = []
        for i in range(blocks):
            made.append(
                block(
                    self.inplanes,
                    planes,
                    stride if i == 0 else 1,
                    downsample if i == 0 else None,
                    self.groups,
                    self.base_width,
                    before if i == 0 else self.dilation,
                    self._norm_layer,
                )
            )
            self.inplanes = after
        return nn.Sequential(*made)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(holdfast.flatten(self.avgpool(x), 1))


@register("ResNet18")
def resnet18(**kwargs):
    """ResNet-18; `weights`: see zoo."""
    return ResNet(BasicBlock, (2, 2, 2, 2), **kwargs)


@register("ResNet34")
def resnet34(**kwargs):
    """ResNet-34; `weights`: see zoo."""
    return ResNet(BasicBlock, (3, 4, 6, 3), **kwargs)


@register("ResNet50")
def resnet50(**kwargs):
    """ResNet-50; `weights`: see zoo."""
    return ResNet(Bottleneck, (3, 4, 6, 3), **kwargs)


@register("ResNet101")
def resnet101(**kwargs):
    """ResNet-101; `weights`: see zoo."""
    return ResNet(Bottleneck, (3, 4, 23, 3), **kwargs)


@register("ResNet152")
def resnet152(**kwargs):
    """ResNet-152; `weights`: see zoo."""
    return ResNet(Bottleneck, (3, 8, 36, 3), **kwargs)


@register("ResNeXt50_32X4D")
def resnext50_32x4d(**kwargs):
    """ResNeXt-50, 32 groups of width 4; `weights`: see zoo."""
    kwargs = {"groups": 32, "width_per_group": 4} | kwargs
    return ResNet(Bottleneck, (3, 4, 6, 3), **kwargs)


@register("ResNeXt101_32X8D")
def resnext101_32x8d(**kwargs):
    """ResNeXt-101, 32 groups of width 8; `weights`: see zoo."""
    kwargs = {"groups": 32, "width_per_group": 8} | kwargs
    return ResNet(Bottleneck, (3, 4, 23, 3), **kwargs)


@register("Wide_ResNet50_2")
def wide_resnet50_2(**kwargs):
    """ResNet-50 with inner layers twice as wide; `weights`: see zoo."""
    return ResNet(Bottleneck, (3, 4, 6, 3), **({"width_per_group": 128} | kwargs))


@register("Wide_ResNet101_2")
def wide_resnet101_2(**kwargs):
    """ResNet-101 with inner layers twice as wide; `weights`: see zoo."""
    return ResNet(Bottleneck, (3, 4, 23, 3), **({"width_per_group": 128} | kwargs))
