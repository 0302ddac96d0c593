# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""MobileNetV2 (Sandler et al., "MobileNetV2: inverted residuals and linear
bottlenecks", 2018)."""

from holdfast import nn
from holdfast.vision.models.zoo import register

# Expansion, channels, blocks, stride of the first block: the paper's table 2.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _round_channels(channels, multiple):
    """The nearest multiple, not more than a tenth below."""
    rounded = max(multiple, int(channels + multiple / 2) // multiple * multiple)
    return rounded + multiple if rounded < 0.9 * channels else rounded


def _conv(before, after, kernel, stride, groups, norm):
    return nn.Sequential(
        nn.Conv2d(
            before, after, kernel, stride, kernel // 2, groups=groups, bias=False
        ),
        norm(after),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """Widens by expand_ratio, convolves each channel by itself, narrows again."""

    def __init__(self, inp, oup, stride, expand_ratio, norm_layer=None):
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm = norm_layer or nn.BatchNorm2d
        hidden = int(round(inp * expand_ratio))
        layers = [] if expand_ratio == 1 else [_conv(inp, hidden, 1, 1, 1, norm)]
        layers += [
            _conv(hidden, hidden, 3, stride, hidden, norm),
            nn.Conv2d(hidden, oup, 1, bias=False),
            norm(oup),
        ]
        self.conv = nn.Sequential(*layers)
        self.stride, self.out_channels = stride, oup
        self.use_res_connect = stride == 1 and inp == oup

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """[N, 3, H, W] to [N, num_classes]; `width_mult` scales all channels, which are
    multiples of `round_nearest`."""

    def __init__(
        self,
        num_classes=1000,
        width_mult=1.0,
        inverted_residual_setting=None,
        round_nearest=8,
        block=None,
        norm_layer=None,
        dropout=0.2,
    ):
        super().__init__()
        block, norm = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        stages = inverted_residual_setting or _STAGES
        if any(len(stage) != 4 for stage in stages):
            raise ValueError(
                "inverted_residual_setting should be a non-empty list of 4-element "
                f"lists, got {inverted_residual_setting}"
            )
        before = _round_channels(32 * width_mult, round_nearest)
        layers = [_conv(3, before, 3, 2, 1, norm)]
        for expansion, channels, blocks, stride in stages:
            after = _round_channels(channels * width_mult, round_nearest)
            for i in range(blocks):
                first = stride if i == 0 else 1
                layers.append(block(before, after, first, expansion, norm))
                before = after
        self.last_channel = _round_channels(1280 * max(1.0, width_mult), round_nearest)
        layers.append(_conv(before, self.last_channel, 1, 1, 1, norm))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes)
        )
        self.apply(self._start)

    @staticmethod
    def _start(module):
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
        elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            nn.init.ones_(module.weight)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 0.01)
        else:
            return
        if module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


@register("MobileNet_V2")
def mobilenet_v2(**kwargs):
    """MobileNetV2; `weights`: see zoo."""
    return MobileNetV2(**kwargs)
