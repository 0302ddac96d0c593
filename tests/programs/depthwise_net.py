# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Inverted residuals with depthwise convolutions and squeeze-and-excitation."""

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
rng = np.random.RandomState(7)


def make_divisible(v, divisor=4):
    return max(divisor, int(v + divisor / 2) // divisor * divisor)


class ConvBNReLU(nn.Sequential):
    def __init__(self, inp, oup, kernel_size=3, stride=1, groups=1):
        padding = (kernel_size - 1) // 2
        super().__init__(
            nn.Conv2d(
                inp, oup, kernel_size, stride, padding, groups=groups, bias=False
            ),
            nn.BatchNorm2d(oup),
            nn.ReLU6(inplace=True),
        )


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // 4, 1)
        self.fc2 = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        scale = x.mean([2, 3], keepdim=True)
        scale = torch.relu_(self.fc1(scale))
        return x * torch.sigmoid(self.fc2(scale))


class InvertedResidual(nn.Module):
    def __init__(self, inp, oup, stride, expand_ratio):
        super().__init__()
        hidden = make_divisible(inp * expand_ratio)
        self.use_res_connect = stride == 1 and inp == oup
        self.conv = nn.Sequential(
            ConvBNReLU(inp, hidden, kernel_size=1),
            ConvBNReLU(hidden, hidden, stride=stride, groups=hidden),
            SqueezeExcite(hidden),
            nn.Conv2d(hidden, oup, 1, 1, 0, bias=False),
            nn.BatchNorm2d(oup),
        )

    def forward(self, x):
        if self.use_res_connect:
            return x + self.conv(x)
        return self.conv(x)


class Net(nn.Module):
    cfg = [(1, 8, 1), (4, 12, 2), (4, 12, 1)]

    def __init__(self, num_classes=4):
        super().__init__()
        features = [ConvBNReLU(3, 8, stride=2)]
        channels = 8
        for t, c, s in self.cfg:
            features.append(InvertedResidual(channels, c, s, t))
            channels = c
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Dropout(0.0), nn.Linear(channels, num_classes)
        )

    def forward(self, x):
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, 1).reshape(x.shape[0], -1)
        return self.classifier(x)


def set_weights(m):
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        fan_in = m.weight[0].numel()
        w = rng.standard_normal(tuple(m.weight.shape)) / np.sqrt(fan_in)
        m.weight.data = torch.from_numpy(w.astype(np.float32))
        if m.bias is not None:
            m.bias.data.zero_()


net = Net().apply(set_weights)
x = torch.from_numpy(rng.standard_normal((12, 3, 16, 16)).astype(np.float32))
y = torch.LongTensor(rng.randint(0, 4, 12))
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.RMSprop(net.parameters(), lr=2e-3, momentum=0.9, eps=1e-3)
ema = {k: v.clone() for k, v in net.state_dict().items()}
for i in range(5):
    out = net(x)
    loss = criterion(out, y)
    net.zero_grad()
    loss.backward()
    total = nn.utils.clip_grad_norm_(net.parameters(), max_norm=5.0)
    optimizer.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            if v.dtype.is_floating_point:
                ema[k].mul_(0.9).add_(v, alpha=0.1)
            else:
                ema[k].copy_(v)
    print("iter %d loss %.5f grad norm %.4f" % (i, loss.item(), float(total)))
net.load_state_dict(ema)
net.train(False)
print("ema logits", net(x)[0].tolist())
print("batches", net.features[0][1].num_batches_tracked)
