# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A call of PyTorch's OpInfo samples on either device, with copies of the arguments."""

import torch
from torch.utils._pytree import tree_flatten, tree_map

# Operators whose result is random, or whatever memory held: types and sizes are
# compared, numbers are not.
RANDOM = {
    "bernoulli",
    "cauchy",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "new_empty",
    "new_empty_strided",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.rrelu",
    "normal",
    "pca_lowrank",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "svd_lowrank",
    "uniform",
}

# Operators that want tensor arguments on the CPU, wherever the first one is.
CPU_ARGUMENTS = {"tensor_split"}


def is_random(op, sample):
    """Whether two runs of the sample give different numbers."""
    if op.name == "nn.functional.multi_head_attention_forward":
        return sample.kwargs.get("training", False)
    return op.name in RANDOM or sample.kwargs.get("dropout_p", 0) > 0


def to_device(tensor, device="holdfast"):
    """A copy of `tensor` there, with the same strides over a storage like its own."""
    if tensor.layout is not torch.strided:
        return tensor.detach().to(device).requires_grad_(tensor.requires_grad)
    there = tensor.detach()
    if there.is_contiguous() or there.numel() == 0:
        there = there.clone() if device == "cpu" else there.to(device)
    else:
        there = there.resolve_conj().resolve_neg()
        size, stride = there.size(), there.stride()
        last = sum((n - 1) * s for n, s in zip(size, stride))
        whole = there.as_strided((last + 1,), (1,))
        whole = whole.clone() if device == "cpu" else whole.to(device)
        there = whole.as_strided(size, stride, 0)
    return there.requires_grad_(tensor.requires_grad)


def moved(value, device):
    """Arguments for a call on `device`: tensors are copied, devices are replaced."""

    def move(leaf):
        if isinstance(leaf, torch.Tensor):
            return to_device(leaf, device)
        if isinstance(leaf, torch.device) or leaf == "cpu" and isinstance(leaf, str):
            return torch.device(device)
        return leaf

    return tree_map(move, value)


class Call:
    """A sample's call on one device."""

    def __init__(self, op, sample, device):
        self.device = device
        self.op = op
        args, kwargs = list(sample.args), sample.kwargs
        if op.name not in CPU_ARGUMENTS:
            args, kwargs = moved(args, device), moved(kwargs, device)
        self.arguments = moved(sample.input, device), args, kwargs
        self.process = sample.output_process_fn_grad

    def __call__(self):
        first, rest, named = self.arguments
        if any(isinstance(x, torch.Tensor) for x in tree_flatten(self.arguments)[0]):
            return self.op(first, *rest, **named)
        with torch.device(self.device):
            return self.op(first, *rest, **named)

    def leaves(self):
        """The arguments that require gradients."""
        return [
            x
            for x in tree_flatten(self.arguments)[0]
            if isinstance(x, torch.Tensor) and x.requires_grad
        ]
