# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torchvision's own operators, which it has in C++ for the CPU and CUDA. They are given
to the dispatcher by name, before or after torchvision is imported."""

import math

import torch

from holdfast_torch import kernels_deform

_library = torch.library.Library("torchvision", "IMPL")
# Elements of what a group of regions reads at once: 64 MiB of float32.
_AT_ONCE = 1 << 24


def operator(name):
    def keep(function):
        _library.impl(name, function, "PrivateUse1")
        return function

    return keep


operator("deform_conv2d")(kernels_deform.deform_conv2d)
operator("_deform_conv2d_backward")(kernels_deform.deform_conv2d_backward)


@operator("nms")
def nms(dets, scores, iou_threshold):
    """torchvision's own for the CPU: how many boxes stay is known only when it is done,
    so that the client waits in any case; 20 bytes of each box are read."""
    kept = torch.ops.torchvision.nms(dets.cpu(), scores.cpu(), iou_threshold)
    return kept.to(dets.device)


# ---- means of samples: a region's weights of rows and of columns are independent


def _samples(low, high, bins, sampling, length):
    """[K,bins,length]: what each row of a picture counts in each bin of regions from
    `low` to `high` [K], whose bins take `sampling` samples each, between two rows;
    as many as rows where it is not positive."""
    size = (high - low)[:, None, None]
    step = size / bins
    count = torch.full_like(size, sampling) if sampling > 0 else step.ceil()
    most = sampling if sampling > 0 else max(int(count.max()), 1)
    at = torch.arange(most, device=low.device, dtype=low.dtype)
    bin_ = torch.arange(bins, device=low.device, dtype=low.dtype)[:, None]
    where = low[:, None, None] + step * (bin_ + (at + 0.5) / count.clamp(min=1))
    counts = (where >= -1) & (where <= length) & (at < count)
    where = where.clamp(0, length - 1)[..., None]
    rows = torch.arange(length, device=low.device, dtype=low.dtype)
    share = (1 - (where - rows).abs()).clamp(min=0) * counts[..., None]
    return share.sum(2) / count.clamp(min=1)


def _edges(rois, scale, offset, least):
    """(picture, y0, x0, y1, x1) of regions [K,5] in pixels of the picture."""
    x0, y0, x1, y1 = (rois[:, 1:] * scale - offset).unbind(1)
    if least:
        x1, y1 = x0 + (x1 - x0).clamp(min=1), y0 + (y1 - y0).clamp(min=1)
    return rois[:, 0].long(), y0, x0, y1, x1


def _align_weights(rois, scale, bins, sampling, offset, least, sides):
    picture, y0, x0, y1, x1 = _edges(rois, scale, offset, least)
    rows = _samples(y0, y1, bins[0], sampling, sides[0])
    return picture, rows, _samples(x0, x1, bins[1], sampling, sides[1])


def _groups(count, elements):
    size = max(1, _AT_ONCE // max(elements, 1))
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def _weigh(input, weights, each):
    """each(pictures, rows, columns) of groups of regions, one after the other."""
    picture, rows, columns = weights
    found = [
        each(input.index_select(0, picture[part]), rows[part], columns[part])
        for part in _groups(len(picture), math.prod(input.shape[1:]))
    ]
    return torch.cat(found)


def _spread(grad, weights, shape, each):
    picture, rows, columns = weights
    result = grad.new_zeros(shape)
    for part in _groups(len(picture), math.prod(shape[1:])):
        result.index_add_(0, picture[part], each(grad[part], rows[part], columns[part]))
    return result


def _mean(x, rows, columns):
    across = torch.einsum("kchw,kqw->kchq", x, columns)
    return torch.einsum("kph,kchq->kcpq", rows, across)


def _mean_backward(grad, rows, columns):
    down = torch.einsum("kph,kcpq->kchq", rows, grad)
    return torch.einsum("kchq,kqw->kchw", down, columns)


@operator("roi_align")
def roi_align(input, rois, spatial_scale, height, width, sampling_ratio, aligned):
    if len(rois) == 0:
        return input.new_zeros(0, input.shape[1], height, width)
    offset, sides = (0.5, False) if aligned else (0.0, True), input.shape[2:]
    weights = _align_weights(
        rois, spatial_scale, (height, width), sampling_ratio, *offset, sides
    )
    return _weigh(input, weights, _mean)


@operator("_roi_align_backward")
def roi_align_backward(
    grad, rois, spatial_scale, height, width, n, c, h, w, sampling_ratio, aligned
):
    if len(rois) == 0:
        return grad.new_zeros(n, c, h, w)
    offset = (0.5, False) if aligned else (0.0, True)
    weights = _align_weights(
        rois, spatial_scale, (height, width), sampling_ratio, *offset, (h, w)
    )
    return _spread(grad, weights, (n, c, h, w), _mean_backward)


# ---- the same where each bin has channels of its own


def _split(x, bins):
    return x.unflatten(1, (-1, *bins))


def _mean_of_own(x, rows, columns):
    x = _split(x, (rows.shape[1], columns.shape[1]))
    down = torch.einsum("kcpqhw,kph->kcpqw", x, rows)
    return torch.einsum("kcpqw,kqw->kcpq", down, columns)


def _mean_of_own_backward(grad, rows, columns):
    across = torch.einsum("kcpq,kqw->kcpqw", grad, columns)
    return torch.einsum("kcpqw,kph->kcpqhw", across, rows).flatten(1, 3)


def _channels(input, count, bins):
    channels = torch.arange(input.shape[1], device=input.device, dtype=torch.int32)
    return channels.view(1, -1, *bins).repeat(count, 1, 1, 1)


def _own(input, rois, bins, weights):
    if len(rois) == 0:
        result = input.new_zeros(0, input.shape[1] // math.prod(bins), *bins)
    else:
        result = _weigh(input, weights(), _mean_of_own)
    return result, _channels(input, len(rois), bins)


@operator("ps_roi_align")
def ps_roi_align(input, rois, spatial_scale, height, width, sampling_ratio):
    bins, sides = (height, width), input.shape[2:]
    return _own(
        input,
        rois,
        bins,
        lambda: _align_weights(
            rois, spatial_scale, bins, sampling_ratio, 0.5, False, sides
        ),
    )


@operator("_ps_roi_align_backward")
def ps_roi_align_backward(
    grad, rois, mapping, spatial_scale, height, width, sampling_ratio, n, c, h, w
):
    if len(rois) == 0:
        return grad.new_zeros(n, c, h, w)
    weights = _align_weights(
        rois, spatial_scale, (height, width), sampling_ratio, 0.5, False, (h, w)
    )
    return _spread(grad, weights, (n, c, h, w), _mean_of_own_backward)


# ---- bins of whole pixels


def _round(x):
    """As C's: halves away from zero."""
    return x.sign() * (x.abs() + 0.5).floor()


def _bins(low, size, bins, last):
    """First and end of each bin [K,bins,1] of regions of `size` pixels from `low`."""
    step = (size / bins)[:, None]
    number = torch.arange(bins, device=low.device, dtype=low.dtype)
    first = (number * step).floor() + low[:, None]
    end = ((number + 1) * step).ceil() + low[:, None]
    return first.clamp(0, last)[..., None], end.clamp(0, last)[..., None]


def _inside(low, size, bins, length, last):
    first, end = _bins(low, size, bins, last)
    pixels = torch.arange(length, device=low.device, dtype=low.dtype)
    return (pixels >= first) & (pixels < end)


def _whole(rois, scale, bins, sides, extra):
    """Which rows and columns are in which bins: bool [K,bins,length]. Torchvision
    counts a region's last pixel in roi_pool (`extra` 1) and not in ps_roi_pool, where
    it also leaves out the last row and column of the picture."""
    picture, y0, x0, y1, x1 = _edges(rois, scale, 0.0, False)
    y0, x0, y1, x1 = (_round(v) for v in (y0, x0, y1, x1))
    last = (sides[0] - 1 + extra, sides[1] - 1 + extra)
    high, wide = ((b - a + extra).clamp(min=1) for a, b in ((y0, y1), (x0, x1)))
    rows = _inside(y0, high, bins[0], sides[0], last[0])
    return picture, rows, _inside(x0, wide, bins[1], sides[1], last[1])


def _pool_weights(rois, scale, bins, sides):
    picture, rows, columns = _whole(rois, scale, bins, sides, 0)
    rows, columns = rows.to(rois.dtype), columns.to(rois.dtype)
    return (
        picture,
        rows / rows.sum(2, keepdim=True).clamp(min=1),
        columns / columns.sum(2, keepdim=True).clamp(min=1),
    )


@operator("ps_roi_pool")
def ps_roi_pool(input, rois, spatial_scale, height, width):
    bins, sides = (height, width), input.shape[2:]
    return _own(
        input, rois, bins, lambda: _pool_weights(rois, spatial_scale, bins, sides)
    )


@operator("_ps_roi_pool_backward")
def ps_roi_pool_backward(grad, rois, mapping, spatial_scale, height, width, n, c, h, w):
    if len(rois) == 0:
        return grad.new_zeros(n, c, h, w)
    weights = _pool_weights(rois, spatial_scale, (height, width), (h, w))
    return _spread(grad, weights, (n, c, h, w), _mean_of_own_backward)


def _largest(x, rows, columns):
    """Largest elements of each bin and their place in the picture, the first of equal
    ones: along each row first. -inf and any place in an empty bin."""
    least = float("-inf")
    across, places = [], []
    for j in range(columns.shape[1]):
        inside = columns[:, None, None, j]
        value, place = torch.where(inside, x, least).max(3)
        across.append(value), places.append(place)
    across, places = torch.stack(across, 3), torch.stack(places, 3)  # [k,C,H,bins]
    found = []
    for i in range(rows.shape[1]):
        inside = rows[:, None, i, :, None]
        value, row = torch.where(inside, across, least).max(2, keepdim=True)
        column = places.gather(2, row)
        found.append(torch.stack([value, (row * x.shape[3] + column).to(x.dtype)]))
    return torch.cat(found, 3).transpose(0, 1)


@operator("roi_pool")
def roi_pool(input, rois, spatial_scale, height, width):
    channels, sides = input.shape[1], input.shape[2:]
    if len(rois) == 0:
        none = input.new_zeros(0, channels, height, width)
        return none, none.int()
    weights = _whole(rois, spatial_scale, (height, width), sides, 1)
    found = _weigh(input, weights, _largest)
    values, places = found[:, 0], found[:, 1].int()
    filled = weights[1].any(2)[:, None, :, None] & weights[2].any(2)[:, None, None]
    return torch.where(filled, values, 0), torch.where(filled, places, -1)


@operator("_roi_pool_backward")
def roi_pool_backward(grad, rois, argmax, spatial_scale, height, width, n, c, h, w):
    picture = rois[:, 0].long()[:, None, None, None]
    channel = torch.arange(c, device=grad.device)[:, None, None]
    where = (picture * c + channel) * (h * w) + argmax.clamp(min=0)
    result = grad.new_zeros(n * c * h * w)
    result.index_add_(0, where.reshape(-1), (grad * (argmax >= 0)).reshape(-1))
    return result.view(n, c, h, w)
