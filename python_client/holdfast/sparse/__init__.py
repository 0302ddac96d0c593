# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sparse tensors as lists of coordinates (COO), by PyTorch's names.

A sparse tensor is two dense ones, indices and values, and everything on it is
ops on these: products gather and scatter, gradients reach the values and dense
operands. CSR and its kin are refused by name.
"""

from holdfast.missing import module_getattr
from holdfast.sparse.construction import sparse_coo_tensor
from holdfast.sparse.coo_tensor import SparseTensor
from holdfast.sparse.products import addmm, mm
from holdfast.sparse.reductions import log_softmax, softmax, sum
from holdfast.typed_tensors import NAMES as _TYPED

# torch.spmm and its kin.
spmm = dsmm = smm = mm

__all__ = ["SparseTensor", "addmm", "log_softmax", "mm", "softmax", "sum"]


class _SparseTyped(type):
    """torch.sparse.FloatTensor(indices, values, size) and its kin."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, SparseTensor) and instance.dtype is cls.dtype

    def __call__(cls, *args):
        if len(args) in (2, 3) and not isinstance(args[0], int):
            return sparse_coo_tensor(*args, dtype=cls.dtype)
        size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        return sparse_coo_tensor(tuple(size), dtype=cls.dtype)


for _name, _dense in _TYPED.items():
    globals()[_name] = _SparseTyped(
        _name, (), {"dtype": _dense.dtype, "__doc__": f"Sparse, of {_dense.dtype}."}
    )

__getattr__ = module_getattr(
    "torch.sparse", submodules=("construction", "coo_tensor", "products", "reductions")
)
