# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A Module's state_dict: reading, loading, copying."""

from collections import OrderedDict, namedtuple

import holdfast


class _IncompatibleKeys(
    namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])
):
    """What load_state_dict returns."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateMixin:
    """state_dict and load_state_dict, with PyTorch's keys and errors."""

    def get_extra_state(self):
        """Override, with set_extra_state, to store more in the state_dict."""
        raise RuntimeError("get_extra_state is not defined by this module.")

    def set_extra_state(self, state):
        """Receives what get_extra_state returned."""
        raise RuntimeError("set_extra_state is not defined by this module.")

    def state_dict(self, *, destination=None, prefix="", keep_vars=False):
        """Dotted name -> tensor for every parameter and persistent buffer.

        The tensors share storage with the module. They are detached unless
        `keep_vars`.
        """
        if destination is None:
            destination = OrderedDict()
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination,
                    prefix=prefix + name + ".",
                    keep_vars=keep_vars,
                )
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in self._own_state().items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if _has_extra_state(self):
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def _own_state(self):
        """This module's own parameters and persistent buffers, None left out."""
        state = {k: v for k, v in self._parameters.items() if v is not None}
        for name, value in self._buffers.items():
            if value is not None and name not in self._non_persistent_buffers_set:
                state[name] = value
        return state

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies `state_dict` into the parameters and buffers of the tree.

        `strict`: missing or unexpected keys are an error. `assign`: takes the
        tensors themselves instead of copying. Returns the named tuple
        (missing_keys, unexpected_keys). RuntimeError lists everything that
        does not fit; what does fit is loaded all the same.
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict)}."
            )
        state_dict = OrderedDict(state_dict)
        missing, unexpected, errors = [], [], []
        for prefix, module in _with_prefixes(self, ""):
            metadata = {"assign_to_params_buffers": assign}
            module._load_from_state_dict(
                state_dict, prefix, metadata, True, missing, unexpected, errors
            )
        if strict:
            if unexpected:
                errors.insert(0, _key_error("Unexpected", unexpected))
            if missing:
                errors.insert(0, _key_error("Missing", missing))
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ):
        """Loads this module's own entries; override to accept older layouts."""
        own = self._own_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, current in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            problem = self._load_one(name, key, current, state_dict[key], assign)
            if problem:
                error_msgs.append(problem)
        extra_key = prefix + "_extra_state"
        if _has_extra_state(self):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra_key:
                    continue
                name, _, rest = key[len(prefix) :].partition(".")
                # A dotted rest belongs to a child, which checks it itself.
                if name in self._modules if rest else name in own:
                    continue
                unexpected_keys.append(key)

    def _load_one(self, name, key, current, value, assign):
        """Copies one tensor; returns what is wrong, or None."""
        if not isinstance(value, holdfast.Tensor):
            return (
                f'While copying the parameter named "{key}", expected Tensor from '
                f"checkpoint but received {type(value)}"
            )
        # Checkpoints of old hold scalars as one-element vectors.
        if tuple(current.shape) == () and tuple(value.shape) == (1,):
            value = value[0]
        if tuple(value.shape) != tuple(current.shape):
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} "
                f"from checkpoint, the shape in current model is {current.shape}."
            )
        if not assign:
            with holdfast.no_grad():
                current.copy_(value)
        elif name in self._parameters:
            if type(value) is not type(current):
                value = type(current)(value, current.requires_grad)
            self._parameters[name] = value
        else:
            self._buffers[name] = value
        return None

    # ---- copies

    def __getstate__(self):
        return dict(self.__dict__)


def _with_prefixes(module, prefix):
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from _with_prefixes(child, prefix + name + ".")


def _has_extra_state(module):
    return type(module).get_extra_state is not StateMixin.get_extra_state


def _key_error(kind, keys):
    listed = ", ".join(f'"{key}"' for key in keys)
    return f"{kind} key(s) in state_dict: {listed}. "
