# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""accelerate, and with it transformers' Trainer.

accelerate chooses a device from a list of its own (`PartialState.default_device` in
accelerate/state.py), where no out-of-tree device is. It takes the one that the variable
ACCELERATE_TORCH_DEVICE names (accelerate/state.py, `PartialState.__init__`), read when
the first Accelerator of a process is made, and keeps it for all others."""

import contextlib
import os

VARIABLE = "ACCELERATE_TORCH_DEVICE"


def install(name="holdfast"):
    """Accelerators and TrainingArguments made from now on use device `name`; "cpu"
    gives accelerate its own choice back. Those that were made before keep theirs."""
    if name == "cpu":
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = name
    _forget()


def _forget():
    from accelerate.state import AcceleratorState, GradientState, PartialState

    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


@contextlib.contextmanager
def device(name="holdfast"):
    """install(), and what was before at the end."""
    before = os.environ.get(VARIABLE, "cpu")
    install(name)
    try:
        yield
    finally:
        install(before)
