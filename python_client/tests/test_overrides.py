# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Subclasses of Tensor, and the protocol __torch_function__."""

import copy
import threading

import pytest

import holdfast


class Labelled(holdfast.Tensor):
    """Plain but for a method."""

    def doubled(self):
        return self * 2


class Logging(holdfast.Tensor):
    log = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


class Wrapper:
    """Not a Tensor: has one."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        def bare(x):
            if isinstance(x, (list, tuple)):
                return [bare(item) for item in x]
            return x.value if isinstance(x, Wrapper) else x

        return cls(func(*bare(args), **(kwargs or {})))


class Stubborn(holdfast.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


@pytest.fixture(autouse=True)
def empty_log():
    Logging.log.clear()


@pytest.mark.parametrize(
    "make",
    [
        lambda t, x: x + 1,
        lambda t, x: 1 - x,
        lambda t, x: t.ones(3) + x,
        lambda t, x: x @ t.ones(3, 2),
        lambda t, x: -x,
        lambda t, x: ~(x > 0),
        lambda t, x: x > 0,
        lambda t, x: x.sum(),
        lambda t, x: t.sin(x),
        lambda t, x: t.nn.functional.softmax(x, 0),
        lambda t, x: x[1:],
        lambda t, x: x.split(1)[0],
        lambda t, x: t.stack([t.ones(3), x]),
        lambda t, x: x.max(0)[0],
        lambda t, x: x.detach(),
        lambda t, x: x.data,
        lambda t, x: x.clone().doubled(),
        lambda t, x: x.to(t.float64),
        lambda t, x: copy.deepcopy(x),
    ],
)
def test_results_are_of_the_subclass(torch, make):
    assert type(make(torch, torch.ones(3).as_subclass(Labelled))) is Labelled


def test_plain_tensors_stay_plain_beside_a_subclass(torch):
    torch.ones(3).as_subclass(Labelled)
    x = torch.ones(3)
    assert type(x + 1) is torch.Tensor
    assert type(torch.nn.Parameter(x) + 1) is torch.Tensor
    assert type(torch.nn.Linear(3, 2)(x)) is torch.Tensor


def test_as_subclass_stays_in_the_graph_and_shares_memory(torch):
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).as_subclass(Labelled)
    (y * y).sum().backward()
    assert x.grad.tolist() == [8, 8, 8]
    z = torch.zeros(3)
    z.as_subclass(Labelled).add_(1)
    assert z.tolist() == [1, 1, 1]


def test_as_subclass_takes_a_subclass(torch):
    with pytest.raises(TypeError, match="subclass of Tensor"):
        torch.ones(3).as_subclass(int)


def test_an_override_sees_each_op(torch):
    x = torch.ones(3).as_subclass(Logging)
    y = torch.sin(x).sum() + 1
    assert type(y) is Logging
    assert Logging.log == ["sin", "sum", "add"]


def test_the_more_special_class_is_asked_first(torch):
    class Special(Logging):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            assert types == (Special, Logging)
            return "special"

    a, b = torch.ones(3).as_subclass(Logging), torch.ones(3).as_subclass(Special)
    assert a + b == "special"
    assert torch.cat([a, b]) == "special"


def test_objects_of_other_classes_take_ops_over(torch):
    w = Wrapper(torch.ones(2))
    assert torch.add(w, 1).value.tolist() == [2, 2]
    assert torch.mean(w).value.item() == 1
    assert torch.cat([w, torch.zeros(2)]).value.tolist() == [1, 1, 0, 0]
    assert (torch.ones(2) + w).value.tolist() == [2, 2]
    assert (torch.ones(2) @ w).value.item() == 2


def test_who_declines_everything_is_named(torch):
    with pytest.raises(TypeError, match="no implementation found for 'add'.*Stubborn"):
        torch.ones(3).as_subclass(Stubborn) + 1


def test_errors_of_ops_reach_the_caller(torch):
    x = torch.ones(3).as_subclass(Logging)
    with pytest.raises(RuntimeError, match="size of tensor"):
        x + torch.ones(4)
    with pytest.raises(TypeError):
        x + object()


def test_without_the_protocol_objects_are_plain(torch):
    x = torch.ones(3).as_subclass(Logging)
    with torch._C.DisableTorchFunction():
        assert type(x + 1) is torch.Tensor
    assert Logging.log == []
    assert type(x + 1) is Logging


class Counting(holdfast.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_every_op_of_its_thread(torch):
    elsewhere = []
    with Counting() as outer, Counting() as inner:
        torch.ones(2).sum()
        thread = threading.Thread(target=lambda: elsewhere.append(torch.ones(2) + 1))
        thread.start()
        thread.join()
    torch.ones(2) * 2
    assert inner.names[-1] == "sum" and "add" not in inner.names
    assert inner.names == outer.names
    assert elsewhere[0].tolist() == [2, 2]


def test_functions_of_programs_can_be_taken_over(torch):
    @torch.overrides.wrap_torch_function(lambda x: (x,))
    def twice(x):
        return x * 2

    assert twice(torch.ones(2)).tolist() == [2, 2]
    assert twice(Wrapper(torch.ones(2))).value.tolist() == [2, 2]
    x = Wrapper(torch.ones(2))
    assert torch.overrides.has_torch_function((x,))
    assert not torch.overrides.has_torch_function((torch.ones(2), 1))
    assert torch.overrides.is_tensor_like(x)
    assert not torch.overrides.is_tensor_like(1)


def test_units_that_ops_carry_along(torch):
    """The example of such subclasses' documentation: data about the data."""

    class Metadata(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs)
            found = [a.unit for a in args if hasattr(a, "unit")]
            if isinstance(result, cls) and found:
                result.unit = found[0]
            return result

    x = torch.ones(2).as_subclass(Metadata)
    x.unit = "m"
    assert (x * 3).exp().unit == "m"
