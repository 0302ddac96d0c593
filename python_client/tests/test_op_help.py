# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""help() of the op table's functions: signature, keywords, an example that is true."""

import doctest
import inspect

import pytest

import holdfast

pytestmark = pytest.mark.usefixtures("torch")
PUBLIC = {row["name"]: row for row in holdfast._C.schema() if row["public"]}


def functions():
    for name, row in PUBLIC.items():
        if "inplace_only" not in row["flags"]:
            yield name, getattr(holdfast._C.ops, name)


def test_examples_are_true():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    count = 0
    for name, function in functions():
        test = parser.get_doctest(
            function.__doc__, {"torch": holdfast}, name, None, None
        )
        count += len(test.examples)
        said = []
        runner.run(test, out=said.append)
        assert runner.summarize(verbose=False).failed == 0, "".join(said)
    assert count > 45


def test_keywords_beside_the_rows_are_told():
    parameters = inspect.signature(holdfast.add).parameters
    assert list(parameters) == ["input", "other", "alpha", "out"]
    assert "alpha" in inspect.signature(holdfast.Tensor.add_).parameters
    assert "out" not in inspect.signature(holdfast.Tensor.add).parameters
    assert "out" not in inspect.signature(holdfast.transpose).parameters
    assert "generator" in inspect.signature(holdfast.randn).parameters
    assert "requires_grad" in inspect.signature(holdfast.eye).parameters


def test_what_help_tells_is_taken():
    """Each keyword that a signature has beside the row's parameters."""
    x = holdfast.ones(2)
    assert holdfast.add(x, x, alpha=2, out=holdfast.empty(2)).tolist() == [3, 3]
    assert holdfast.sub(x, x, alpha=2).tolist() == [-1, -1]
    assert holdfast.div(x, 2, rounding_mode="floor").tolist() == [0, 0]
    assert holdfast.round(x / 3, decimals=1).shape == (2,)
    assert holdfast.eye(2, device="cpu", requires_grad=True).requires_grad
    generator = holdfast.Generator()
    assert holdfast.rand(2, generator=generator, requires_grad=True).requires_grad


def test_what_help_says():
    add = holdfast.add.__doc__
    assert "broadcast" in add and "alpha" in add and "out:" in add and ">>>" in add
    assert "docs.pytorch.org/docs/stable/generated/torch.add.html" in add
    assert "In place" in holdfast.Tensor.add_.__doc__
    assert "shares input's memory" in holdfast.Tensor.transpose.__doc__
