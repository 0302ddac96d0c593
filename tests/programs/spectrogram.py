# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Tones told apart by their spectrograms."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rate, length = 800, 400
rng = np.random.default_rng(6)
time = np.arange(length) / rate


def tone(label):
    base = (40, 90, 160)[label]
    wave = np.sin(2 * np.pi * base * time + rng.uniform(0, 6.28))
    return wave + 0.3 * rng.standard_normal(length)


labels = torch.tensor([i % 3 for i in range(24)])
waves = torch.tensor(np.stack([tone(int(i)) for i in labels]), dtype=torch.float32)


class Spectrogram(nn.Module):
    def __init__(self, n_fft=64, hop=32):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, x):
        stft = torch.stft(
            x, self.n_fft, self.hop, window=self.window, return_complex=True
        )
        power = stft.real.pow(2) + stft.imag.pow(2)
        return torch.log(power.clamp(min=1e-5))


front = Spectrogram()
net = nn.Sequential(
    nn.Conv1d(33, 8, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 3, 1)
)
for p in net.parameters():
    p.data.copy_(torch.from_numpy(rng.uniform(-0.1, 0.1, p.shape)))
features = front(waves)
print(features.shape, features.mean().item(), features.std().item())
mean = features.mean(dim=(0, 2), keepdim=True)
features = (features - mean) / features.std()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for epoch in range(6):
    logits = net(features).mean(-1)
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    hits = (logits.argmax(-1) == labels).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.5f}, right {hits}/{len(labels)}")

signal = waves[:2].double().requires_grad_()
window = torch.hann_window(64, dtype=torch.double)
spectrum = torch.stft(signal, 64, 16, window=window, return_complex=True)
back = torch.istft(spectrum, 64, 16, window=window, length=length)
print("round trip", (back - signal).abs().max().item() < 1e-9)
spectrum.abs().sum().backward()
print("gradient", signal.grad.norm().item())
frequencies = torch.fft.rfftfreq(length, 1 / rate)
peaks = torch.fft.rfft(waves).abs().argmax(-1)
print("peaks", frequencies[peaks][:6].tolist())
