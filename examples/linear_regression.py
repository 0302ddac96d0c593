# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The smallest training loop: fits a line, on a daemon that starts by itself."""

import holdfast as torch
from holdfast import nn, optim


def main():
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 200).unsqueeze(1)
    y = 3 * x + 0.5 + 0.1 * torch.randn(200, 1)

    model = nn.Linear(1, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for step in range(1, 101):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss={loss.item():.5f}")
    print(f"y = {model.weight.item():.3f} x + {model.bias.item():.3f}")


if __name__ == "__main__":
    main()
