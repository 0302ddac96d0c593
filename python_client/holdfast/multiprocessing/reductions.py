# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How tensors travel between processes: by a token that names their storage.

Pickled by multiprocessing, a tensor is a token of its storage and its layout. The
daemon keeps the storage for the token until the other process has opened it, or
this process's session ends. Plain pickle still brings the elements.
"""

import functools
from multiprocessing import util
from multiprocessing.reduction import ForkingPickler

import holdfast
from holdfast import _C


def _layout(tensor):
    return (
        tensor.dtype.name,
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.storage_offset(),
        tensor._device_number,
    )


def reduce_tensor(tensor):
    """For multiprocessing's pickler: what rebuild_tensor needs."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, "
            "since autograd does not support crossing process boundaries. If you just "
            "want to transfer the data, call detach() on the tensor before serializing "
            "(e.g., putting it on the queue)."
        )
    token = _C.share(tensor, True)
    return rebuild_tensor, (
        type(tensor),
        tensor._session.address,
        token,
        _layout(tensor),
        tensor.requires_grad,
        dict(tensor.__dict__),
    )


def rebuild_tensor(cls, address, token, layout, requires_grad, attributes):
    """The tensor of another process, over the same memory."""
    tensor = _opened(address, token, layout, release_hold=True)
    if cls is not holdfast.Tensor:
        tensor = holdfast.Tensor._make_subclass(cls, tensor, requires_grad)
    elif requires_grad:
        tensor.requires_grad_()
    tensor.__dict__.update(attributes)
    return tensor


def _opened(address, token, layout, release_hold):
    session = _C.current_session()
    if session is None or session.closed:
        # This process's first tensor: the daemon is where that one lives. Nobody
        # takes this session over, so it need not wait for anybody.
        holdfast.connect(address, grace=0 if address.startswith("unix:") else 10)
    name, shape, stride, offset, device = layout
    dtype = getattr(_C, name)
    return _C.open_shared(token, dtype, shape, stride, offset, release_hold, device)


def share_in_place(tensor):
    """Lets other processes have the tensor, forked ones too."""
    if tensor._is_shared:
        return
    token = _C.share(tensor, False)
    # multiprocessing calls it in children that it forks.
    reopen = functools.partial(
        _reopen, address=tensor._session.address, token=token, layout=_layout(tensor)
    )
    util.register_after_fork(tensor, reopen)


def _reopen(tensor, address, token, layout):
    """In a forked child: the parent's object becomes the child's own handle."""
    requires_grad = tensor.requires_grad
    opened = _opened(address, token, layout, release_hold=False)
    if requires_grad:
        opened.requires_grad_()
    tensor._become(opened)


def register():
    """Makes multiprocessing's pickler share tensors."""
    for cls in (holdfast.Tensor, holdfast.nn.Parameter, holdfast.nn.Buffer):
        ForkingPickler.register(cls, reduce_tensor)
