# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Collectives of a group of one: everything is there already."""

import enum

import holdfast
from holdfast.distributed.process_group import _check, _world
from holdfast.errors import UnsupportedError


class ReduceOp(enum.Enum):
    """How all_reduce and its kin combine; of one value all give that value."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class reduce_op:
    """ReduceOp, by its name of old."""

    SUM, PRODUCT, MIN, MAX = (
        ReduceOp.SUM,
        ReduceOp.PRODUCT,
        ReduceOp.MIN,
        ReduceOp.MAX,
    )


class Work:
    """What an asynchronous collective returns: it is done."""

    def __init__(self, result=None):
        self._result = result

    def wait(self, timeout=None):
        """True, at once."""
        return True

    def is_completed(self):
        """True."""
        return True

    is_success = is_completed

    def result(self):
        """The tensors of the collective."""
        return self._result


def _done(async_op, result=None):
    return Work(result) if async_op else None


def _tensor(name, *tensors):
    for tensor in tensors:
        if not isinstance(tensor, holdfast.Tensor):
            raise TypeError(
                f"{name}() takes tensors. Got {type(tensor).__name__}: {tensor!r}."
            )


def _fill(name, targets, sources):
    _tensor(name, *targets, *sources)
    with holdfast.no_grad():
        for target, source in zip(targets, sources):
            target.copy_(source)


def _one(name, items):
    if len(items) != 1:
        raise ValueError(
            f"{name}: a group of one process takes lists of one. Got {len(items)}."
        )
    return items[0]


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensor as it is."""
    _world(group)
    _tensor("all_reduce", tensor)
    return _done(async_op, [tensor])


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensors as they are."""
    _world(group)
    _tensor("all_reduce_coalesced", *tensors)
    return _done(async_op, tensors)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensor as it is."""
    _world(group)
    _check(dst)
    _tensor("reduce", tensor)
    return _done(async_op, [tensor])


def broadcast(tensor, src=0, group=None, async_op=False):
    """The tensor as it is."""
    _world(group)
    _check(src)
    _tensor("broadcast", tensor)
    return _done(async_op, [tensor])


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Copies tensor into the one tensor of the list."""
    _world(group)
    _fill("all_gather", [_one("all_gather", tensor_list)], [tensor])
    return _done(async_op, tensor_list)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Copies input_tensor into output_tensor."""
    _world(group)
    _tensor("all_gather_into_tensor", output_tensor, input_tensor)
    _fill("all_gather", [output_tensor.view(input_tensor.shape)], [input_tensor])
    return _done(async_op, [output_tensor])


def gather(tensor, gather_list=None, dst=0, group=None, async_op=False):
    """Copies tensor into the one tensor of the list."""
    _world(group)
    _check(dst)
    _fill("gather", [_one("gather", gather_list or [])], [tensor])
    return _done(async_op, gather_list)


def scatter(tensor, scatter_list=None, src=0, group=None, async_op=False):
    """Copies the one tensor of the list into tensor."""
    _world(group)
    _check(src)
    _fill("scatter", [tensor], [_one("scatter", scatter_list or [])])
    return _done(async_op, [tensor])


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Copies the one tensor of the list into output."""
    _world(group)
    _fill("reduce_scatter", [output], [_one("reduce_scatter", input_list)])
    return _done(async_op, [output])


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Copies input into output."""
    _world(group)
    _tensor("reduce_scatter_tensor", output, input)
    _fill("reduce_scatter", [output], [input.view(output.shape)])
    return _done(async_op, [output])


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Copies the one tensor of a list into that of the other."""
    _world(group)
    targets = [_one("all_to_all", output_tensor_list)]
    _fill("all_to_all", targets, [_one("all_to_all", input_tensor_list)])
    return _done(async_op, output_tensor_list)


def all_to_all_single(
    output,
    input,
    output_split_sizes=None,
    input_split_sizes=None,
    group=None,
    async_op=False,
):
    """Copies input into output."""
    _world(group)
    _fill("all_to_all_single", [output], [input])
    return _done(async_op, [output])


def barrier(group=None, async_op=False, device_ids=None):
    """Waits for the processes of the group, which is this one."""
    _world(group)
    return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """barrier()."""
    barrier(group)


def all_gather_object(object_list, obj, group=None):
    """Puts obj into the list."""
    _world(group)
    _one("all_gather_object", object_list)
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=0, group=None):
    """Puts obj into the list."""
    all_gather_object(object_gather_list, obj, group)


def broadcast_object_list(object_list, src=0, group=None, device=None):
    """The list as it is."""
    _world(group)
    _check(src)


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list, src=0, group=None
):
    """Puts the one object of a list into the other."""
    _world(group)
    scatter_object_output_list[0] = _one(
        "scatter_object_list", scatter_object_input_list
    )


def _nobody(name):
    def function(*args, **kwargs):
        _world()
        raise UnsupportedError(
            f"torch.distributed.{name}: a group of one process has nobody to exchange "
            "with."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Refused: there is nobody to exchange with."
    return function


send, recv, isend, irecv = (_nobody(n) for n in ("send", "recv", "isend", "irecv"))
batch_isend_irecv = _nobody("batch_isend_irecv")
P2POp = _nobody("P2POp")
