# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Pruning: parameters multiplied by masks of zeros and ones.

A pruned parameter is kept as `<name>_orig`, its mask as the buffer `<name>_mask`;
a forward pre-hook computes `<name>` from the two.
"""

import numbers
from abc import ABC, abstractmethod

import holdfast

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """Base of pruning methods: subclasses define PRUNING_TYPE ("unstructured",
    "structured" or "global") and compute_mask()."""

    PRUNING_TYPE = None

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask for t, on top of default_mask."""

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module):
        """The parameter times its mask."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes a parameter of the module, after what was pruned of it before."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        earlier = _hook_of(module, name)
        if earlier is not None:
            key, hook = earlier
            del module._forward_pre_hooks[key]
            container = hook if isinstance(hook, PruningContainer) else None
            if container is None:
                container = PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
            original = getattr(module, name + "_orig")
            mask = getattr(module, name + "_mask")
        else:
            original = getattr(module, name)
            mask = None
        scores = original if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(original.shape):
            raise ValueError(
                "importance_scores should have the same shape as parameter "
                f"{name} of {module}. Got {list(scores.shape)} and "
                f"{list(original.shape)}."
            )
        if mask is None:
            mask = holdfast.ones_like(original).detach()
        with holdfast.no_grad():
            new_mask = method.compute_mask(scores.detach(), mask)
        if earlier is None:
            parameter = module._parameters.pop(name)
            module.register_parameter(name + "_orig", parameter)
        module.register_buffer(name + "_mask", new_mask.to(original.dtype))
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """A pruned copy of a tensor."""
        if default_mask is None:
            default_mask = holdfast.ones_like(t)
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, default_mask)

    def remove(self, module):
        """Makes the pruning permanent: a plain parameter with zeros in it."""
        name = self._tensor_name
        with holdfast.no_grad():
            weight = self.apply_mask(module)
        if name in module.__dict__:
            delattr(module, name)
        parameter = module._parameters.pop(name + "_orig")
        parameter.data = weight.detach()
        del module._buffers[name + "_mask"]
        setattr(module, name, parameter)


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one parameter, applied in order."""

    def __init__(self, *args):
        self._pruning_methods = ()
        self._tensor_name = args[0]._tensor_name if args else None
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Appends one; ValueError if it is another parameter's."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name not in (None, method._tensor_name):
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._tensor_name = method._tensor_name
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        """The last method's mask, of what earlier ones have left."""
        method = self._pruning_methods[-1]
        mask = default_mask.clone()
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            others = [d for d in range(t.dim()) if d != method.dim % t.dim()]
            kept = mask.sum(others) != 0
            index = (slice(None),) * (method.dim % t.dim()) + (kept,)
            mask[index] = method.compute_mask(t[index], mask[index]).to(mask.dtype)
            return mask
        elif method.PRUNING_TYPE == "global":
            left = holdfast.ones_like(mask).bool()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[left] = method.compute_mask(t[left], mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing: a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask


class _Unstructured(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        count = _count_of(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            flat = mask.reshape(-1)
            flat[self._chosen(t.reshape(-1), count)] = 0
            mask = flat.reshape(mask.shape)
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _chosen(self, t, count):
        return holdfast.topk(holdfast.rand_like(t), count).indices


class L1Unstructured(_Unstructured):
    """Prunes the elements closest to zero."""

    def _chosen(self, t, count):
        return holdfast.topk(t.abs(), count, largest=False).indices


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t, default_mask):
        if t.dim() < 2:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. "
                f"Found tensor of shape {list(t.shape)} with {t.dim()} dims"
            )
        dim = self.dim % t.dim()
        count = _count_of(self.amount, t.size(dim))
        if not count:
            return default_mask
        others = [d for d in range(t.dim()) if d != dim]
        channels = holdfast.ones(t.size(dim), dtype=default_mask.dtype)
        channels[self._chosen(t, others, t.size(dim), count)] = 0
        shape = [1] * t.dim()
        shape[dim] = -1
        return default_mask * channels.reshape(shape)


class RandomStructured(_Structured):
    """Prunes whole slices along dim at random."""

    def _chosen(self, t, others, size, count):
        return holdfast.topk(holdfast.rand(size), count).indices


class LnStructured(_Structured):
    """Prunes the slices along dim with the smallest n-norms."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def _chosen(self, t, others, size, count):
        norms = holdfast.norm(t, p=self.n, dim=others)
        return holdfast.topk(norms, count, largest=False).indices


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module, name):
    """Marks a parameter as pruned with a mask of ones; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes `amount` (a count or a fraction) of a parameter's elements at random;
    returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the `amount` of elements with the smallest absolute values; returns
    the module."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes `amount` slices along dim at random; returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the `amount` of slices along dim with the smallest n-norms; returns
    the module."""
    LnStructured.apply(
        module, name, amount, n, dim, importance_scores=importance_scores
    )
    return module


def custom_from_mask(module, name, mask):
    """Prunes where the mask is 0; returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes several parameters, (module, name) each, as if they were one."""
    pairs = list(parameters)
    importance_scores = importance_scores or {}
    scores = [
        importance_scores.get((m, n), getattr(m, n)).detach().reshape(-1)
        for m, n in pairs
    ]
    masks = [
        getattr(m, n + "_mask", holdfast.ones_like(getattr(m, n).detach())).reshape(-1)
        for m, n in pairs
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    container = PruningContainer(method)
    mask = container.compute_mask(holdfast.cat(scores), holdfast.cat(masks))
    position = 0
    for module, name in pairs:
        parameter = getattr(module, name)
        part = mask[position : position + parameter.numel()]
        custom_from_mask(module, name, part.reshape(parameter.shape))
        position += parameter.numel()


def remove(module, name):
    """Makes the pruning of a parameter permanent; returns the module."""
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning "
            "can be removed"
        )
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module):
    """Whether a parameter of the module or of its children is."""
    return any(
        isinstance(hook, BasePruningMethod)
        for m in module.modules()
        for hook in m._forward_pre_hooks.values()
    )


def _hook_of(module, name):
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


def _check_amount(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and amount > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a "
            "non-negative integer"
        )


def _count_of(amount, size):
    if isinstance(amount, numbers.Integral):
        if amount > size:
            raise ValueError(
                f"amount={amount} should be smaller than the number of parameters to "
                f"prune={size}"
            )
        return int(amount)
    return round(amount * size)
