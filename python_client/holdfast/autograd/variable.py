# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Variable, which has been Tensor since PyTorch 0.4."""

from holdfast import _C


class _VariableType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, _C.Tensor)


class Variable(metaclass=_VariableType):
    """Variable(data, requires_grad=False): data as a leaf of its own."""

    def __new__(cls, data, requires_grad=False, volatile=None):
        tensor = _C.ops.detach(data)
        return tensor.requires_grad_() if requires_grad else tensor
