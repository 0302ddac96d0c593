# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""make_grid, save_image and what is drawn on images."""

import io

import numpy
import pytest

from holdfast.vision import utils

Image = pytest.importorskip("PIL.Image")


def plain_grid(images, nrow=8, padding=2, pad_value=0.0):
    """What make_grid makes of [N, 3, H, W], image by image."""
    count, channels, height, width = images.shape
    columns = min(nrow, count)
    rows = -(-count // columns)
    height, width = height + padding, width + padding
    size = channels, rows * height + padding, columns * width + padding
    grid = numpy.full(size, pad_value, images.dtype)
    for i, image in enumerate(images):
        y, x = i // columns * height + padding, i % columns * width + padding
        grid[:, y : y + height - padding, x : x + width - padding] = image
    return grid


@pytest.mark.parametrize("count, nrow", [(2, 8), (5, 2), (9, 3), (7, 8), (10, 4)])
@pytest.mark.parametrize("padding, pad_value", [(2, 0.0), (0, 0.0), (3, 0.5)])
def test_grids(torch, count, nrow, padding, pad_value):
    images = torch.rand(count, 3, 4, 5)
    options = {"nrow": nrow, "padding": padding, "pad_value": pad_value}
    wanted = plain_grid(images.numpy(), **options)
    assert numpy.array_equal(utils.make_grid(images, **options).numpy(), wanted)
    grid = utils.make_grid(list(images), **options)
    assert numpy.array_equal(grid.numpy(), wanted)


def test_grids_of_bytes_and_of_one_channel(torch):
    images = torch.randint(0, 256, (6, 1, 4, 5), dtype=torch.uint8)
    grid = utils.make_grid(images, nrow=4, pad_value=7)
    assert grid.dtype is torch.uint8
    wanted = plain_grid(images.numpy().repeat(3, 1), nrow=4, pad_value=7)
    assert numpy.array_equal(grid.numpy(), wanted)


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (1, 1, 4, 5), (3, 4, 5)])
def test_a_single_image_stays_as_it_is(torch, shape):
    image = torch.rand(shape)
    wanted = numpy.broadcast_to(image.numpy().reshape(-1, 4, 5), (3, 4, 5))
    assert numpy.array_equal(utils.make_grid(image).numpy(), wanted)


@pytest.mark.parametrize("scale_each", [False, True])
@pytest.mark.parametrize("value_range", [None, (-0.5, 1.5)])
def test_normalized_grids(torch, scale_each, value_range):
    images = torch.randn(4, 3, 4, 5, requires_grad=True)
    before = images.detach().numpy().copy()
    grid = utils.make_grid(
        images, normalize=True, scale_each=scale_each, value_range=value_range
    )
    axes = (1, 2, 3) if scale_each else None
    low, high = before.min(axes, keepdims=True), before.max(axes, keepdims=True)
    if value_range:
        low, high = value_range
    wanted = plain_grid((numpy.clip(before, low, high) - low) / (high - low))
    assert numpy.allclose(grid.numpy(), wanted, rtol=1e-6, atol=1e-7)
    assert not grid.requires_grad
    assert numpy.array_equal(images.detach().numpy(), before)
    flat = utils.make_grid(torch.full((2, 3, 2, 2), 5.0), normalize=True)
    assert flat.max().item() == 0


def test_grids_of_what_is_none(torch):
    with pytest.raises(TypeError, match="got <class 'int'>"):
        utils.make_grid(3)
    with pytest.raises(TypeError, match="list containing <class 'float'>"):
        utils.make_grid([torch.rand(3, 2, 2), 1.0])
    with pytest.raises(TypeError, match=r"min and max are numbers. Got \[0, 1\]"):
        utils.make_grid(torch.rand(2, 3, 2, 2), normalize=True, value_range=[0, 1])
    with pytest.raises(ValueError, match="Got nrow=0, padding=2"):
        utils.make_grid(torch.rand(2, 3, 2, 2), nrow=0)
    for shape in ((0, 3, 2, 2), (2, 2, 3, 2, 2), (4,)):
        with pytest.raises(ValueError, match=f"Got \\[{shape[0]}"):
            utils.make_grid(torch.rand(shape))


def test_saved_images(torch, tmp_path):
    images = torch.rand(5, 3, 6, 4) * 1.2 - 0.1
    wanted = plain_grid(images.numpy(), nrow=3)
    wanted = numpy.clip(wanted * 255 + 0.5, 0, 255).astype(numpy.uint8)
    wanted = wanted.transpose(1, 2, 0)
    utils.save_image(images, tmp_path / "grid.png", nrow=3)
    file = io.BytesIO()
    utils.save_image(images, file, format="png", nrow=3)
    for source in (tmp_path / "grid.png", file):
        assert numpy.array_equal(numpy.asarray(Image.open(source)), wanted)
    utils.save_image(torch.ones(1, 3, 2), str(tmp_path / "one.bmp"))
    assert Image.open(tmp_path / "one.bmp").getpixel((1, 2)) == (255, 255, 255)
    with pytest.raises(ValueError, match="unknown file extension"):
        utils.save_image(images, tmp_path / "grid.what")


def test_boxes(torch):
    image = torch.zeros(1, 20, 30, dtype=torch.uint8)
    boxes = torch.tensor([[2, 3, 10, 12], [15, 5, 28, 18]])
    drawn = utils.draw_bounding_boxes(image, boxes, colors=["red", (0, 0, 250)])
    assert drawn.dtype is torch.uint8 and drawn.shape == (3, 20, 30)
    wanted = numpy.zeros((3, 20, 30), numpy.uint8)
    for (x, y, right, bottom), (channel, value) in zip(
        boxes.tolist(), [(0, 255), (2, 250)]
    ):
        wanted[channel, y : bottom + 1, [x, right]] = value
        wanted[channel, [y, bottom], x : right + 1] = value
    assert numpy.array_equal(drawn.numpy(), wanted)
    assert image.max().item() == 0
    filled = utils.draw_bounding_boxes(image, boxes, colors="lime", fill=True, width=2)
    assert 80 < filled[1, 8, 6].item() < 120 and filled[1, 4, 3].item() == 255
    named = utils.draw_bounding_boxes(image, boxes, labels=[None, "a"])
    plain = utils.draw_bounding_boxes(image, boxes)
    inside = (named != plain).any(0).nonzero()
    assert len(inside) > 5
    assert (inside > torch.tensor([5, 15])).all().item()
    assert (inside < torch.tensor([18, 28])).all().item()


def test_boxes_that_cannot_be(torch):
    image = torch.zeros(3, 9, 9, dtype=torch.uint8)
    boxes = torch.tensor([[1.0, 1, 5, 5]])
    for arguments, error, message in (
        ((1, boxes), TypeError, "Tensor expected, got <class 'int'>"),
        ((image.float(), boxes), ValueError, "uint8 expected, got holdfast.float32"),
        ((image[None], boxes), ValueError, "not batches"),
        ((image[:2], boxes), ValueError, "Got 2 channels"),
        ((image, boxes.flip(1)), ValueError, r"Got \[5.0, 5.0, 1.0, 1.0\]"),
        ((image, boxes[:, :3]), ValueError, r"\(1, 3\)"),
        ((image, boxes, ["a", "b"]), ValueError, r"boxes \(1\) and labels \(2\)"),
        ((image, boxes, None, []), ValueError, r"colors \(0\) is less"),
    ):
        with pytest.raises(error, match=message):
            utils.draw_bounding_boxes(*arguments)
    with pytest.warns(UserWarning, match="No box was drawn"):
        assert utils.draw_bounding_boxes(image, boxes[:0]) is image


def test_masks(torch):
    image = torch.randint(0, 256, (3, 8, 9), dtype=torch.uint8)
    masks = torch.rand(2, 8, 9) > 0.5
    drawn = utils.draw_segmentation_masks(image, masks, 0.3, ["red", (9, 8, 7)])
    covered = image.numpy().copy()
    for mask, color in zip(masks.numpy(), [(255, 0, 0), (9, 8, 7)]):
        covered[:, mask] = numpy.array(color, numpy.uint8)[:, None]
    wanted = image.numpy() * numpy.float32(0.7) + covered * numpy.float32(0.3)
    assert abs(drawn.numpy() - wanted).max() < 1.001 and drawn.dtype is torch.uint8
    whole = utils.draw_segmentation_masks(image, masks[0], alpha=1.0, colors="blue")
    assert (whole[:, masks[0]].T == torch.tensor([0, 0, 255])).all().item()
    assert torch.equal(whole[:, ~masks[0]], image[:, ~masks[0]])
    for arguments, message in (
        ((image, masks.float()), "dtype bool. Got holdfast.float32"),
        ((image, masks[:, 1:]), r"\(8, 9\) and \(7, 9\)"),
        ((image[:1], masks), "Got 1 channels"),
        ((image, masks, 0.5, ["red"]), r"masks \(2\) than colors \(1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            utils.draw_segmentation_masks(*arguments)


OPTIONS = [
    {},
    {"nrow": 3, "padding": 1, "pad_value": 0.25},
    {"normalize": True},
    {"normalize": True, "scale_each": True},
    {"normalize": True, "value_range": (-1, 1)},
]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_grids_are_torchvisions(torch, channels, options):
    peer = pytest.importorskip("torchvision")
    import torch as pytorch

    images = torch.randn(7, channels, 5, 6)
    wanted = peer.utils.make_grid(pytorch.from_numpy(images.numpy()), **options)
    got = utils.make_grid(images, **options)
    assert numpy.array_equal(got.numpy(), wanted.numpy())


def test_drawings_are_torchvisions(torch):
    peer = pytest.importorskip("torchvision")
    import torch as pytorch

    image = torch.randint(0, 256, (3, 40, 50), dtype=torch.uint8)
    theirs = pytorch.from_numpy(image.numpy())
    boxes = [[2, 3, 20, 30], [10, 8, 45, 36]]
    masks = torch.rand(3, 40, 50) > 0.5
    for options in (
        {},
        {"labels": ["cat", "dog"], "width": 3},
        {"fill": True, "colors": ["red", "#00ff80"]},
    ):
        wanted = peer.utils.draw_bounding_boxes(
            theirs, pytorch.tensor(boxes), **options
        )
        got = utils.draw_bounding_boxes(image, torch.tensor(boxes), **options)
        assert numpy.array_equal(got.numpy(), wanted.numpy()), options
    for alpha in (0.0, 0.3, 0.8, 1.0):
        wanted = peer.utils.draw_segmentation_masks(
            theirs, pytorch.from_numpy(masks.numpy()), alpha
        )
        got = utils.draw_segmentation_masks(image, masks, alpha)
        assert numpy.array_equal(got.numpy(), wanted.numpy()), alpha
