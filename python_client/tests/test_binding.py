# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How arguments of the op table's functions are bound and checked."""

import inspect

import pytest


def test_positional_keyword_default(torch):
    x = torch.arange(6.0).view(2, 3)
    assert x.sum(0).tolist() == [3.0, 5.0, 7.0]
    assert torch.sum(x, 0, True).shape == (1, 3)
    assert torch.sum(input=x, dim=1, keepdim=True).shape == (2, 1)
    assert torch.sum(x, axis=1, keepdims=True).shape == (2, 1)
    assert x.sum((0, 1)).item() == 15.0
    assert x.sum([-1]).shape == (2,)
    assert x.sum(dim=None).item() == 15.0
    assert x.sum(0, dtype=torch.float64).dtype is torch.float64


def test_sizes_as_arguments_or_as_a_tuple(torch):
    x = torch.arange(6)
    for shape in (x.view(2, 3), x.view((2, 3)), x.view([2, -1]), x.view(size=(2, 3))):
        assert shape.shape == (2, 3)
    assert x.view(-1).shape == (6,)
    assert x.view(torch.Size([3, 2])).shape == (3, 2)
    assert x.view(2, 3).permute(1, 0).shape == (3, 2)
    assert x.view(2, 3).permute((1, 0)).shape == (3, 2)
    assert x.view(1, 6).expand(2, 6).shape == (2, 6)
    assert x.view(1, 6).expand(-1, 6).shape == (1, 6)
    assert torch.rand(2, 3).shape == torch.rand((2, 3)).shape == (2, 3)
    assert x.view(2, 3).flip(0, 1).tolist() == [[5, 4, 3], [2, 1, 0]]


@pytest.mark.parametrize(
    "call, text",
    [
        ("x.add()", r"add\(\) missing required argument: 'other'"),
        ("x.add(1, 2, 3)", r"add\(\) takes at most 2 positional"),
        ("x.relu(zz=1)", r"relu\(\) got an unexpected keyword argument 'zz'"),
        ("torch.add(x, 1, other=2)", r"multiple values for argument 'other'"),
        ("torch.add('a', x)", r"argument 'input' must be Tensor or number, not str"),
        ("torch.relu(1)", r"argument 'input' must be Tensor, not int"),
        ("x.sum(1.5)", r"argument 'dim' must be tuple of ints, not float"),
        ("x.sum(0, 1)", r"argument 'keepdim' must be bool, not int"),
        ("x.sum(0, dtype='f')", r"argument 'dtype' must be holdfast.dtype, not str"),
        ("torch.cat(x)", r"argument 'tensors' must be tuple of Tensors"),
        ("torch.cat([x, 1])", r"argument 'tensors' must be tuple of Tensors, not int"),
        ("x.softmax('a')", r"argument 'dim' must be int, not str"),
        ("x.transpose(0, 1.0)", r"argument 'dim1' must be int, not float"),
        ("torch.relu()", r"missing required argument: 'input'"),
        ("torch.linear(x, x, 3)", r"argument 'bias' must be Tensor, not int"),
    ],
)
def test_type_errors_name_function_and_argument(torch, call, text):
    x = torch.ones(2, 2)
    with pytest.raises(TypeError, match=text):
        eval(call, {"torch": torch, "x": x})


def test_further_forms_of_pytorch(torch):
    x, y = torch.tensor([4.0, 9.0]), torch.tensor([1.0, 2.0])
    assert torch.add(x, y, alpha=2).tolist() == [6.0, 13.0]
    assert x.sub(y, alpha=0.5).tolist() == [3.5, 8.0]
    assert torch.div(x, y, rounding_mode="floor").tolist() == [4.0, 4.0]
    assert torch.div(-x, 2, rounding_mode="trunc").tolist() == [-2.0, -4.0]
    assert x.clamp(max=torch.tensor([5.0, 5.0])).tolist() == [4.0, 5.0]
    assert x.mean(dtype=torch.float64).dtype is torch.float64
    z = x.clone()
    assert z.add_(y, alpha=2) is z
    assert z.tolist() == [6.0, 13.0]
    assert x.clone(memory_format=torch.preserve_format).tolist() == [4.0, 9.0]
    with pytest.raises(RuntimeError, match="rounding_mode"):
        torch.div(x, y, rounding_mode="up")
    assert torch.add(x, y, out=z) is z
    assert z.tolist() == (x + y).tolist()


def test_inplace_forms(torch):
    x = torch.tensor([1.0, -2.0])
    assert x.relu_() is x
    assert x.mul_(3).add_(1).tolist() == [4.0, 1.0]
    assert x.fill_(2).tolist() == [2.0, 2.0]
    assert x.copy_(torch.tensor([5, 6])).tolist() == [5.0, 6.0]
    assert x.zero_().tolist() == [0.0, 0.0]
    assert not hasattr(x, "matmul_")


def test_signatures_and_docs(torch):
    parameters = inspect.signature(torch.add).parameters
    assert list(parameters) == ["input", "other", "alpha", "out"]
    assert str(inspect.signature(torch.sum)) == (
        "(input, dim=None, keepdim=False, *, dtype=None, out=None)"
    )
    method = inspect.signature(torch.Tensor.mul)
    assert list(method.parameters) == ["self", "other"]
    assert torch.add.__doc__.startswith("Sum.\n\n")
    assert torch.add.__name__ == "add"


def test_every_public_op_is_a_function(torch):
    for row in torch._C.schema():
        if not row["public"] or "inplace_only" in row["flags"]:
            continue
        assert callable(getattr(torch, row["name"])), row["name"]
        if row["signature"].startswith(("(Tensor input", "(Operand input")):
            assert callable(getattr(torch.Tensor, row["name"])), row["name"]


def test_large_ints_do_not_wrap(torch):
    with pytest.raises(OverflowError):
        torch.ones(2) + (1 << 80)
    with pytest.raises(OverflowError):
        torch.ones(2).view(1 << 80)


def test_what_pytorch_has_and_holdfast_has_not(torch):
    with pytest.raises(AttributeError, match="Did you mean: 'zeros'?"):
        torch.zeors(2)
    with pytest.raises(NotImplementedError, match="holdfast has no torch.fft_magic"):
        torch.fft_magic
    assert not hasattr(torch, "fft_magic")
    with pytest.raises(NotImplementedError, match="one stream: leave it out"):
        torch.ones(2).record_stream(None)
    assert not hasattr(torch.ones(2), "record_stream")
    with pytest.raises(AttributeError):
        torch.ones(2).no_such_name
