# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A program as people write them with torchvision: data, transforms, a network of the
zoo, pictures of the samples."""

import math

import pytest

from holdfast.vision import datasets, models, transforms, utils


@pytest.mark.parametrize("workers", [0, 2])
def test_a_classifier_of_images(torch, tmp_path, workers):
    torch.manual_seed(0)
    prepare = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.5,) * 3, (0.5,) * 3),
        ]
    )
    data = datasets.FakeData(48, (3, 32, 32), 4, transform=prepare)
    train, test = torch.utils.data.random_split(data, [32, 16])
    loader = torch.utils.data.DataLoader(
        train, batch_size=16, shuffle=True, num_workers=workers
    )
    net = models.resnet18(num_classes=4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _ in range(3):
        for x, y in loader:
            assert x.shape == (16, 3, 32, 32) and x.abs().max().item() <= 1
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert len(losses) == 6 and all(math.isfinite(loss) for loss in losses)
    batch, _ = next(iter(torch.utils.data.DataLoader(test, batch_size=8)))
    grid = utils.make_grid(batch, nrow=4, normalize=True)
    assert grid.shape == (3, 70, 138)
    utils.save_image(grid, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").read_bytes()[:4] == b"\x89PNG"
