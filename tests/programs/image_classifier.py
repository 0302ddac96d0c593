# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A convolutional classifier with a loop of its own, in the manner of MNIST scripts."""

from __future__ import print_function

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Noisy pictures of bars: class 0 lies, class 1 stands, class 2 leans."""

    def __init__(self, count, seed, transform=None):
        rng = np.random.RandomState(seed)
        self.labels = rng.randint(0, 3, count)
        self.images = (rng.rand(count, 12, 12) * 90).astype(np.uint8)
        for image, label in zip(self.images, self.labels):
            at = rng.randint(2, 10)
            if label == 0:
                image[at, :] = 255
            elif label == 1:
                image[:, at] = 255
            else:
                image[np.arange(12), np.arange(12)] = 255
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).float().div(255).unsqueeze(0)
        if self.transform:
            image = self.transform(image)
        return image, int(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, 1)
        self.conv2 = nn.Conv2d(6, 8, 3, 1)
        self.dropout1 = nn.Dropout(0.0)
        self.fc1 = nn.Linear(128, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(
                "Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                    epoch,
                    batch_idx * len(data),
                    len(loader.dataset),
                    100.0 * batch_idx / len(loader),
                    loss.item(),
                )
            )


def test(model, device, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    test_loss /= len(loader.dataset)
    print("Test set: Average loss: {:.4f}".format(test_loss))
    print("Accuracy: {}/{}".format(correct, len(loader.dataset)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--log-interval", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def normalize(image):
        return (image - 0.1307) / 0.3081

    train_loader = DataLoader(Shapes(128, 0, normalize), batch_size=16)
    test_loader = DataLoader(Shapes(64, 1, normalize), batch_size=32)
    model = Net().to(device)
    rng = np.random.RandomState(2)
    for p in model.parameters():
        values = rng.uniform(-0.2, 0.2, p.shape).astype("float32")
        p.data.copy_(torch.from_numpy(values))
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()


if __name__ == "__main__":
    main()
