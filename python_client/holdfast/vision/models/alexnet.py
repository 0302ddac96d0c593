# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""AlexNet (Krizhevsky, "One weird trick for parallelizing convolutional neural
networks", 2014)."""

import holdfast
from holdfast import nn
from holdfast.vision.models.zoo import register

# Channels, kernel, stride, padding, and whether pooling follows.
_LAYERS = (
    (64, 11, 4, 2, True),
    (192, 5, 1, 2, True),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)


class AlexNet(nn.Module):
    """[N, 3, H, W] with H, W >= 63 (made for 224) to [N, num_classes]."""

    def __init__(self, num_classes=1000, dropout=0.5):
        super().__init__()
        layers, before = [], 3
        for channels, kernel, stride, padding, pooled in _LAYERS:
            layers += [
                nn.Conv2d(before, channels, kernel, stride, padding),
                nn.ReLU(inplace=True),
            ]
            if pooled:
                layers.append(nn.MaxPool2d(3, 2))
            before = channels
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(before * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x):
        x = self.avgpool(self.features(x))
        return self.classifier(holdfast.flatten(x, 1))


@register("AlexNet")
def alexnet(**kwargs):
    """AlexNet; `weights`: see zoo."""
    return AlexNet(**kwargs)
