# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""PyTorch with a Holdfast daemon as its device: torch.device("holdfast").

    import torch, holdfast_torch
    model = torch.nn.Linear(4, 2).to("holdfast")

PyTorch keeps its own autograd, optimizers and modules; elements lie in the daemon, to
which every op is one message. connect() chooses the daemon; without it the first
tensor starts a private one.
"""

import holdfast
import torch

torch.utils.rename_privateuse1_backend("holdfast")

from holdfast_torch import _device, _torch  # noqa: E402
from holdfast_torch.registration import register  # noqa: E402

torch._register_device_module("holdfast", _device)
register()
torch.utils.generate_methods_for_privateuse1_backend()


def connect(*args, **kwargs):
    """holdfast.connect(): the session where tensors of device "holdfast" are made from
    now on. Those of an earlier session stay there, and do not mix."""
    session = holdfast.connect(*args, **kwargs)
    _torch.forget_session()
    return session


def from_holdfast(tensor):
    """A torch.Tensor of device "holdfast" over the elements of a holdfast.Tensor."""
    return _torch.from_holdfast(tensor)


def to_holdfast(tensor):
    """A holdfast.Tensor over the elements of a torch.Tensor of device "holdfast"."""
    return _torch.to_holdfast(tensor)
