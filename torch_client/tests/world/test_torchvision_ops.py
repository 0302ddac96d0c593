# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torchvision.ops on the daemon: what torchvision has in C++ for the CPU and CUDA."""

import pytest
import torch

torchvision = pytest.importorskip("torchvision")

from three_steps import assert_near, to  # noqa: E402

ops = torchvision.ops


def boxes(count, side=32.0):
    corner = torch.rand(count, 2) * side * 0.6
    return torch.cat([corner, corner + 1 + torch.rand(count, 2) * side * 0.4], 1)


def regions(count=7, images=2):
    picture = torch.randint(images, (count, 1)).float()
    return torch.cat([picture, boxes(count)], 1)


def both(function, inputs, device, tolerance=1e-5):
    """Results and gradients of the floating inputs, on the device and on the CPU."""
    found = []
    for place in ("cpu", device):
        leaves = [
            x.detach().to(place).requires_grad_()
            if x.is_floating_point()
            else x.to(place)
            for x in inputs
        ]
        result = function(*leaves)
        wanted = [x for x in leaves if x.is_floating_point()]
        weights = torch.linspace(-1, 1, result.numel()).view(result.shape).to(place)
        grads = torch.autograd.grad((result * weights).sum(), wanted, allow_unused=True)
        found.append([result, *[g for g in grads if g is not None]])
    assert_near(found[1], found[0], tolerance)


@pytest.mark.parametrize("count", [0, 1, 60])
def test_nms(device, count):
    places, scores = boxes(count), torch.rand(count)
    for limit in (0.2, 0.5, 0.9):
        expected = ops.nms(places, scores, limit)
        found = ops.nms(places.to(device), scores.to(device), limit)
        assert found.device.type == device and torch.equal(found.cpu(), expected)


def test_nms_of_classes(device):
    inputs = boxes(80), torch.rand(80), torch.randint(3, (80,))
    expected = ops.batched_nms(*inputs, 0.4)
    assert torch.equal(ops.batched_nms(*to(inputs, device), 0.4).cpu(), expected)


def test_nms_refuses_what_the_cpu_refuses(device):
    with pytest.raises(RuntimeError, match="boxes should be a 2d tensor"):
        ops.nms(torch.rand(4, device=device), torch.rand(4, device=device), 0.5)
    with pytest.raises(RuntimeError, match="same number of elements"):
        ops.nms(boxes(3).to(device), torch.rand(4, device=device), 0.5)


@pytest.mark.parametrize("sampling", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(device, sampling, aligned):
    rois = regions()
    both(
        lambda x: ops.roi_align(
            x, rois.to(x.device), (3, 4), 0.5, sampling, aligned=aligned
        ),
        [torch.randn(2, 5, 16, 16)],
        device,
    )


def test_roi_pool(device):
    rois = regions()
    both(
        lambda x: ops.roi_pool(x, rois.to(x.device), (3, 2), 0.5),
        [torch.randn(2, 5, 16, 16)],
        device,
    )


@pytest.mark.parametrize("name", ["ps_roi_align", "ps_roi_pool"])
def test_position_sensitive_regions(device, name):
    rois, function = regions(), getattr(ops, name)
    both(
        lambda x: function(x, rois.to(x.device), 2, 0.5),
        [torch.randn(2, 12, 16, 16)],
        device,
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_deform_conv2d(device, masked, groups):
    options = dict(stride=(2, 1), padding=(1, 2), dilation=(1, 2))
    x = torch.randn(2, 4, 9, 8)
    weight, bias = torch.randn(6, 4 // groups, 3, 3), torch.randn(6)
    out = torch.nn.functional.conv2d(x, torch.zeros(1, 4, 3, 3), **options).shape[2:]
    offset = torch.randn(2, 2 * 2 * 9, *out)
    inputs = [x, offset, weight, bias]
    if masked:
        inputs.append(torch.rand(2, 2 * 9, *out))
    both(
        lambda x, o, w, b, m=None: ops.deform_conv2d(x, o, w, b, mask=m, **options),
        inputs,
        device,
        1e-4,
    )


@pytest.mark.parametrize(
    "name",
    "box_iou generalized_box_iou complete_box_iou distance_box_iou".split(),
)
def test_overlaps(device, name):
    a, b = boxes(6), boxes(5)
    expected = getattr(ops, name)(a, b)
    assert_near(getattr(ops, name)(a.to(device), b.to(device)), expected, 1e-5)


def test_boxes(device):
    a = boxes(9)
    b = a.to(device)
    assert_near(ops.box_area(b), ops.box_area(a), 1e-6)
    assert_near(
        ops.clip_boxes_to_image(b, (20, 20)), ops.clip_boxes_to_image(a, (20, 20))
    )
    assert torch.equal(ops.remove_small_boxes(b, 5).cpu(), ops.remove_small_boxes(a, 5))
    for form in ("xywh", "cxcywh"):
        assert_near(
            ops.box_convert(b, "xyxy", form), ops.box_convert(a, "xyxy", form), 1e-6
        )
    masks = torch.zeros(3, 8, 8, dtype=torch.bool)
    masks[0, 1:4, 2:5] = masks[1, 7, 7] = masks[2, :, 3] = True
    assert_near(ops.masks_to_boxes(masks.to(device)), ops.masks_to_boxes(masks), 1e-6)


@pytest.mark.parametrize("name", ["sigmoid_focal_loss", "generalized_box_iou_loss"])
def test_losses(device, name):
    function = getattr(ops, name)
    if name == "sigmoid_focal_loss":
        inputs = [torch.randn(8), (torch.rand(8) > 0.5).float()]
    else:
        inputs = [boxes(8), boxes(8)]
    both(lambda a, b: function(a, b), inputs, device, 1e-4)


def test_layers(device):
    pyramid = ops.FeaturePyramidNetwork([4, 8], 6)
    maps = {"a": torch.randn(1, 4, 16, 16), "b": torch.randn(1, 8, 8, 8)}
    expected = pyramid(maps)
    assert_near(dict(pyramid.to(device)(to(maps, device))), dict(expected), 1e-5)
    for layer in (ops.StochasticDepth(0.0, "row"), ops.DropBlock2d(0.0, 3)):
        x = torch.randn(2, 3, 8, 8)
        assert_near(layer.to(device)(x.to(device)), layer.to("cpu")(x), 1e-6)
