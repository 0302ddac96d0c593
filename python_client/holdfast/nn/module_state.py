# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A Module's state_dict: reading, loading, copying."""

import functools
import warnings
from collections import OrderedDict, namedtuple

import holdfast
from holdfast.utils.hooks import register


STATE_HOOKS = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


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
    """state_dict and load_state_dict, with PyTorch's keys, hooks and errors."""

    _version = 1  # of the layout of this class's entries, told beside them

    def get_extra_state(self):
        """Override, with set_extra_state, to store more in the state_dict."""
        raise RuntimeError("get_extra_state is not defined by this module.")

    def set_extra_state(self, state):
        """Receives what get_extra_state returned."""
        raise RuntimeError("set_extra_state is not defined by this module.")

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Dotted name -> tensor for every parameter and persistent buffer.

        The tensors share storage with the module. They are detached unless
        `keep_vars`. The result's `_metadata` has each module's `_version`. The three
        may also come in this order, as PyTorch's once did.
        """
        given = (*args, *(destination, prefix, keep_vars)[len(args) :])
        destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination,
                    prefix=prefix + name + ".",
                    keep_vars=keep_vars,
                )
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, metadata)
            destination = destination if changed is None else changed
        return destination

    def register_state_dict_pre_hook(self, hook):
        """Calls `hook(module, prefix, keep_vars)` before its state is collected."""
        return register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Calls `hook(module, state_dict, prefix, local_metadata)` once its state and
        its children's is collected; it may change the dict in place. RuntimeError if it
        returns one. Returns a removable handle."""

        @functools.wraps(hook)
        def in_place(*args):
            if hook(*args) is not None:
                raise RuntimeError("state_dict post-hook must return None")

        return register(self._state_dict_hooks, in_place)

    def _register_state_dict_hook(self, hook):
        """Calls `hook(module, state_dict, prefix, local_metadata)` after it; what it
        returns, if not None, takes the state's place."""
        return register(self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """Calls `hook(state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before its own entries are loaded."""
        return register(
            self._load_state_dict_pre_hooks,
            functools.partial(hook, self) if with_module else hook,
        )

    def register_load_state_dict_pre_hook(self, hook):
        """_register_load_state_dict_pre_hook(), the module being the first argument."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Calls `hook(module, incompatible_keys)` once it and its children are loaded.

        The two lists of keys may be changed in place.
        """
        return register(self._load_state_dict_post_hooks, hook)

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
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        missing, unexpected, errors = [], [], []
        found = _IncompatibleKeys(missing, unexpected)

        def load(module, prefix):
            local = dict((metadata or {}).get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(
                state_dict, prefix, local, True, missing, unexpected, errors
            )
            for name, child in module._modules.items():
                if child is not None:
                    load(child, f"{prefix}{name}.")
            for hook in module._load_state_dict_post_hooks.values():
                hook(module, found)

        load(self, "")
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
        return found

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
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
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
        if not assign and current.is_meta and not value.is_meta:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a "
                "meta parameter in the current model, which is a no-op. (Did you mean "
                "to pass `assign=True` to assign items in the state dictionary to "
                "their corresponding key in the module instead of copying them in "
                "place?)",
                stacklevel=4,
            )
        elif not assign:
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


def _has_extra_state(module):
    return type(module).get_extra_state is not StateMixin.get_extra_state


def _key_error(kind, keys):
    listed = ", ".join(f'"{key}"' for key in keys)
    return f"{kind} key(s) in state_dict: {listed}. "
