# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Small programs that mix views, mutation, hooks, functions and control flow:
the same values and the same errors as PyTorch's, in the same process.

Tensors are compared with their element type, shape and requires_grad; errors by
kind (what `except` catches) and by a phrase of the message. DIFFERENCES is the
one table of what differs.
"""

import warnings

import autograd_programs_accumulation
import autograd_programs_functions
import autograd_programs_hooks
import autograd_programs_loops
import autograd_programs_modes
import autograd_programs_mutation
import autograd_programs_training
import autograd_programs_views
import numpy as np
import pytest
from autograd_program import PROGRAMS, Raised, plain

peer = pytest.importorskip("torch", reason="PyTorch is not installed")

THEMES = (
    autograd_programs_accumulation,
    autograd_programs_functions,
    autograd_programs_hooks,
    autograd_programs_loops,
    autograd_programs_modes,
    autograd_programs_mutation,
    autograd_programs_training,
    autograd_programs_views,
)

# Program: why it differs, as docs/design.md says under "Differences". A program
# that no longer differs fails the test.
DIFFERENCES = {
    "a_hook_then_a_write": "a hook sees the gradient of what the tensor was when it "
    "was registered, as in later releases; PyTorch 1.13 runs both on the older",
    "a_hook_on_a_base_then_a_write_through_a_view": "the same",
    "a_hook_on_a_view_of_a_written_base": "the same; PyTorch 1.13 loses the hook",
    "hooks_and_asked_gradients": "autograd.grad() runs the hooks of its inputs, as in "
    "later releases",
    "retained_gradient_of_a_base_written_through_a_view": "a retained gradient is that "
    "of the tensor as it is at backward()",
    "a_view_made_under_no_grad": "it requires no gradient; PyTorch says that it does, "
    "though none flows",
    "in_place_with_itself": "y.mul_(y) keeps what its gradient needs",
    "the_context_after_backward": "backward() lets go of a Function's context, which "
    "may hold tensors that hold it",
    "once_is_enough": "what create_graph makes requires a gradient, whether or not it "
    "turns out to depend on anything: the client does not wait to know",
    "a_linear_gradient_with_create_graph": "the same; its gradient is zero",
}


def outcome(program, torch):
    """What the program returned, or what it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [plain(program(torch))]
        except Exception as error:  # compared with the other's
            return Raised("", error)


def difference(ours, theirs, path="result"):
    """None, or where and how the two differ."""
    if isinstance(theirs, Raised) and isinstance(ours, Raised):
        return _other_error(ours, theirs, path)
    if isinstance(theirs, (list, dict)) and isinstance(ours, type(theirs)):
        if len(ours) != len(theirs):
            return f"{path}: {ours}, PyTorch has {theirs}"
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        for key in keys:
            found = difference(ours[key], theirs[key], f"{path}[{key!r}]")
            if found:
                return found
        return None
    if isinstance(theirs, float) and isinstance(ours, float):
        same = np.isclose(ours, theirs, 1e-6, 1e-8, equal_nan=True)
    else:
        same = type(ours) is type(theirs) and ours == theirs
    return None if same else f"{path}: {ours!r}, PyTorch has {theirs!r}"


def _other_error(ours, theirs, path):
    if theirs.error is None and ours.error is None:
        return None
    same_kind = (
        theirs.error is not None
        and ours.error is not None
        and isinstance(ours.error, type(theirs.error))
    )
    if not same_kind:
        return f"{path}: {ours.error!r}, PyTorch has {theirs.error!r}"
    for who, error in (("holdfast", ours.error), ("PyTorch", theirs.error)):
        if theirs.phrase.lower() not in str(error).lower():
            return f"{path}: {who} does not say {theirs.phrase!r}: {error}"
    return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(torch, name):
    theirs = outcome(PROGRAMS[name], peer)
    found = difference(outcome(PROGRAMS[name], torch), theirs)
    if name in DIFFERENCES:
        assert found is not None, "the row is outdated: the program agrees"
        return
    # A program says itself where it fails: with raised().
    assert not isinstance(theirs, Raised), repr(theirs.error)
    assert found is None, found


def test_there_are_programs_of_every_theme():
    assert len(PROGRAMS) >= 50
    for theme in THEMES:
        mine = [p for p in PROGRAMS.values() if p.__module__ == theme.__name__]
        assert len(mine) >= 5, theme.__name__
    assert set(DIFFERENCES) <= set(PROGRAMS)
