# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""PyTorch with a Holdfast daemon as its device: torch.device("holdfast").

    import torch, holdfast_torch
    model = torch.nn.Linear(4, 2).to("holdfast")

PyTorch keeps its own autograd, optimizers and modules; elements lie in the daemon, to
which every op is one message. connect() chooses the daemon; without it the first
tensor starts a private one.
"""

import torch

from holdfast_torch import requirements

requirements.check()

from holdfast_torch import library  # noqa: E402

# First of all: everything below takes it from the package.
_torch = library.load()
torch.utils.rename_privateuse1_backend("holdfast")

from holdfast_torch import _device, process_group, serialization  # noqa: E402
from holdfast_torch.registration import register  # noqa: E402

torch._register_device_module("holdfast", _device)
register()
process_group.register()
serialization.install()
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)

from holdfast_torch.sessions import (  # noqa: E402, F401
    cancel,
    close,
    connect,
    current_session,
    detach,
    forget,
    from_holdfast,
    keep,
    kept,
    lookup,
    publish,
    status,
    to_holdfast,
)
from holdfast_torch.version import __version__  # noqa: E402, F401
