# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Variants with `out` that take no other dtype than the result's."""

import torch

from holdfast_torch.composites import declare


def _names_of(schema):
    return [a.name for a in schema.arguments if a.is_out]


def _exact(name, functional):
    packet, _, overload = functional.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
    packet, _, overload = name.partition(".")
    names = _names_of(getattr(getattr(torch.ops.aten, packet), overload)._schema)

    @declare(name)
    def kernel(*args, **kwargs):
        outs = [kwargs.pop(n) for n in names]
        results = operator(*args, **kwargs)
        results = results if isinstance(results, (tuple, list)) else [results]
        for out, result in zip(outs, results):
            if out.dtype != result.dtype:
                raise RuntimeError(
                    f"{functional}: Expected out tensor to have dtype {result.dtype}, "
                    f"but got {out.dtype} instead"
                )
            _refuse_own_memory(out, args)
            if out.shape != result.shape:
                out.resize_(result.shape)
            out.copy_(result)
        return outs[0] if len(outs) == 1 else tuple(outs)


def _refuse_own_memory(out, args):
    """PyTorch lets these write no place twice, or where they read."""
    if torch._debug_has_internal_overlap(out) == 1:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor "
            "refers to a single memory location. Please clone() the tensor before "
            "performing the operation."
        )
    for value in args:
        if isinstance(value, torch.Tensor) and value.numel() and out.numel():
            same = (
                value.untyped_storage().data_ptr() == out.untyped_storage().data_ptr()
            )
            if same:
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the "
                    "written-to tensor refer to a single memory location. Please "
                    "clone() the tensor before performing the operation."
                )


for _name, _functional in (
    ("gather.out", "gather"),
    ("index_select.out", "index_select"),
    ("amax.out", "amax"),
    ("amin.out", "amin"),
    ("aminmax.out", "aminmax"),
    ("multinomial.out", "multinomial"),
):
    _exact(_name, _functional)
