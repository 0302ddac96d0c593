# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.nn.modules: the modules by the files that PyTorch has them in."""

import importlib
import sys
import types

from holdfast.missing import module_getattr
from holdfast.nn import *  # noqa: F401,F403
from holdfast.nn import __all__  # noqa: F401

# PyTorch's file -> this package's files.
_FILES = {
    "activation": "activation attention",
    "adaptive": "adaptive",
    "batchnorm": "normalization",
    "channelshuffle": "image",
    "container": "container parameter_container",
    "conv": "conv",
    "distance": "embedding",
    "dropout": "dropout",
    "flatten": "flatten",
    "fold": "image",
    "instancenorm": "normalization",
    "lazy": "lazy",
    "linear": "linear attention",
    "loss": "loss loss_margin",
    "module": "module global_hooks",
    "normalization": "normalization image",
    "padding": "padding",
    "pixelshuffle": "image",
    "pooling": "pooling",
    "rnn": "recurrent",
    "sparse": "embedding",
    "transformer": "transformer",
    "upsampling": "image",
}


def _make(name, sources):
    """A module that shows the names of several of this package's."""
    made = types.ModuleType(f"{__name__}.{name}", f"torch.nn.modules.{name}")
    for source in sources.split():
        found = vars(importlib.import_module(f"holdfast.nn.{source}"))
        vars(made).update((k, v) for k, v in found.items() if k[:2] != "__")
    made.__getattr__ = module_getattr(f"torch.nn.modules.{name}")
    sys.modules[made.__name__] = made
    return made


globals().update((name, _make(name, sources)) for name, sources in _FILES.items())

# Not nn.utils.
utils = importlib.import_module(f"{__name__}.utils")

__getattr__ = module_getattr("torch.nn.modules")
