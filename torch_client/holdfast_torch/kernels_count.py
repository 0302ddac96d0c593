# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Counting: histograms, and segments of rows."""

import holdfast as hf

from holdfast_torch.composites import declare_holdfast as composite, gradients


@composite("histc")
def histc(self, bins=100, min=0, max=0):
    if not self.is_floating_point():  # as on CUDA: a program counts experts by it
        return hf.histc(self.to(hf.float64), bins, min, max).to(self.dtype)
    return hf.histc(self, bins, min, max)


@composite("histogram.bin_ct")
def histogram(self, bins=100, *, range=None, weight=None, density=False):
    return tuple(hf.histogram(self, bins, range=range, weight=weight, density=density))


@composite("histogram.bins_tensor")
def histogram_at(self, bins, *, weight=None, density=False):
    return tuple(hf.histogram(self, bins, weight=weight, density=density))


@composite("_histogramdd_bin_edges")
def _histogramdd_bin_edges(self, bins, *, range=None, weight=None, density=False):
    return tuple(hf.histogramdd(self, list(bins), range=range)[1])


@composite("_histogramdd_from_bin_cts")
def _histogramdd_from_bin_cts(self, bins, *, range=None, weight=None, density=False):
    return hf.histogramdd(
        self, list(bins), range=range, weight=weight, density=density
    )[0]


@composite("_histogramdd_from_bin_tensors")
def _histogramdd_from_bin_tensors(self, bins, *, weight=None, density=False):
    return hf.histogramdd(self, list(bins), weight=weight, density=density)[0]


@composite("bincount")
def bincount(self, weights=None, minlength=0):
    return hf.bincount(self, weights, minlength)


def _segments(data, reduce, lengths, offsets, axis, unsafe, initial):
    return hf.segment_reduce(
        data,
        reduce,
        lengths=lengths,
        offsets=offsets,
        axis=axis,
        unsafe=unsafe,
        initial=initial,
    )


@composite("segment_reduce")
def segment_reduce(
    data,
    reduce,
    *,
    lengths=None,
    indices=None,
    offsets=None,
    axis=0,
    unsafe=False,
    initial=None,
):
    return _segments(data, reduce, lengths, offsets, axis, unsafe, initial)


@composite("_segment_reduce_backward")
def _segment_reduce_backward(
    grad,
    output,
    data,
    reduce,
    *,
    lengths=None,
    offsets=None,
    axis=0,
    initial=None,
):
    return gradients(
        lambda x: _segments(x, reduce, lengths, offsets, axis, True, initial),
        grad,
        data,
    )[0]
