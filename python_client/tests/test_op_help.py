# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""help() of functions: parameters, an example that is true, PyTorch's page."""

import doctest
import inspect
from pathlib import Path

import pytest

import holdfast
from holdfast._registry import FUNCTIONS

pytestmark = pytest.mark.usefixtures("torch")
PUBLIC = {row["name"]: row for row in holdfast._C.schema() if row["public"]}


# Functions without an example. Rows that programs reach as torch.nn.functional's, as
# methods or in torch.special; what opens and ends sessions; C's own.
WITHOUT = set(
    """avg_pool2d constant_pad conv2d conv3d expand linear log_softmax view zeta
    multigammaln cancel connect detach disconnect set_default_session
    is_grad_enabled""".split()
)


def functions():
    for name, row in PUBLIC.items():
        if "inplace_only" not in row["flags"]:
            yield name, getattr(holdfast._C.ops, name)
    for name, function in FUNCTIONS.items():
        if name[0] != "_" and not name.endswith("_") and name not in PUBLIC:
            yield name, function


@pytest.fixture
def shown_as_torch():
    """As examples call the package."""
    holdfast._C.set_shown_package("torch")
    yield
    holdfast._C.set_shown_package("holdfast")


def test_examples_are_true(shown_as_torch):
    holdfast.set_printoptions(profile="default")
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
    assert count > 450


def test_each_function_has_an_example_and_a_page():
    without = {n for n, f in functions() if ">>> " not in f.__doc__}
    assert without <= WITHOUT
    listed = (Path(__file__).with_name("torch_names.txt")).read_text().splitlines()
    (theirs,) = [line.split() for line in listed if line.startswith("torch: ")]
    lost = {
        name
        for name, function in functions()
        if name in theirs and "docs.pytorch.org" not in function.__doc__
    }
    assert lost - without == set()


def test_each_function_has_its_parameters_and_more_than_a_word():
    for name, function in functions():
        assert inspect.signature(function) is not None, name
        assert len(function.__doc__.split("https:")[0]) > 12, name
    names = vars(holdfast.nn.functional)
    for name in holdfast.nn.functional.__dict__:
        function = names[name]
        if inspect.isfunction(function) and name[0] != "_":
            assert function.__doc__, name


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
