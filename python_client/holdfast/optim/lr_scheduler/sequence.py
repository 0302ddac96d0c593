# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Several schedules of one optimizer: one after the other, or all at once."""

from bisect import bisect_right

from .base import LRScheduler


class _Schedulers(LRScheduler):
    """Keeps schedulers, whose states are part of its own."""

    def state_dict(self):
        """Everything but the optimizer; schedulers as their own state."""
        state = {k: v for k, v in super().state_dict().items() if k != "_schedulers"}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Takes over what state_dict() returned."""
        state = dict(state_dict)
        for scheduler, saved in zip(self._schedulers, state.pop("_schedulers")):
            scheduler.load_state_dict(saved)
        self.__dict__.update(state)


class SequentialLR(_Schedulers):
    """Runs schedulers one after the other; each starts at its milestone."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1, verbose=False):
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one "
                f"more than the number of milestone points, but got {len(schedulers)} "
                f"and {len(milestones)}"
            )
        self.optimizer = optimizer
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Making them has stepped every one; only the first shall have.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0].step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self):
        """Moves the scheduler whose turn it is to its next epoch."""
        self.last_epoch += 1
        current = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[current]
        if current > 0 and self._milestones[current - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Schedulers):
    """Steps all the schedulers at each step: their factors multiply."""

    def __init__(self, schedulers, optimizer=None):
        schedulers = list(schedulers)
        optimizers = {id(s.optimizer) for s in schedulers}
        if len(optimizers) != 1:
            raise ValueError(
                "ChainedScheduler expects schedulers of one and the same optimizer, "
                f"but got {len(schedulers)} schedulers of {len(optimizers)} optimizers"
            )
        self.optimizer = schedulers[0].optimizer
        if optimizer is not None and optimizer is not self.optimizer:
            raise ValueError(
                "ChainedScheduler expects all schedulers to belong to the same "
                "optimizer"
            )
        self._schedulers = schedulers
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def step(self):
        """Moves every scheduler to its next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]
