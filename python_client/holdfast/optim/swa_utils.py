# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.optim.swa_utils: averages of a model's weights over training (Izmailov et
al. 2018), exponential ones too."""

import copy
import math

import holdfast
from holdfast.missing import module_getattr
from holdfast.nn import Module
from holdfast.nn.modules.batchnorm import _BatchNorm
from holdfast.optim.lr_scheduler import LRScheduler


def get_ema_avg_fn(decay=0.999):
    """f(averaged, current, count): decay * averaged + (1 - decay) * current."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"decay must be between 0 and 1. Got {decay}.")

    def ema_update(averaged, current, count):
        return decay * averaged + (1 - decay) * current

    return ema_update


def get_ema_multi_avg_fn(decay=0.999):
    """get_ema_avg_fn() for lists of tensors, in place."""
    update = get_ema_avg_fn(decay)

    def ema_update(averaged, current, count):
        for mine, theirs in zip(averaged, current):
            mine.copy_(update(mine, theirs, count))

    return ema_update


class AveragedModel(Module):
    """A copy of `model` whose parameters (with use_buffers, floating point buffers
    too) are the mean of those seen by update_parameters(), or what
    avg_fn(averaged, current, count) gives. `n_averaged` counts the updates."""

    def __init__(
        self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", holdfast.tensor(0, dtype=holdfast.int64))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers
        self._count = None  # n_averaged, once it was read

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        self._count = None
        return super().load_state_dict(*args, **kwargs)

    def _averaged(self, model):
        """Pairs of what is averaged here and there."""
        pairs = list(zip(self.module.parameters(), model.parameters()))
        if self.use_buffers:
            buffers = zip(self.module.buffers(), model.buffers())
            pairs += [(a, b) for a, b in buffers if a.is_floating_point()]
        return pairs

    def update_parameters(self, model):
        """Counts `model`'s weights in; its other buffers are copied."""
        if self._count is None:
            self._count = int(self.n_averaged)
        with holdfast.no_grad():
            pairs = self._averaged(model)
            if self._count == 0:
                for mine, theirs in pairs:
                    mine.copy_(theirs)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(*map(list, zip(*pairs)), self.n_averaged)
            else:
                for mine, theirs in pairs:
                    mine.copy_(self._mean(mine, theirs))
            for mine, theirs in zip(self.module.buffers(), model.buffers()):
                if not (self.use_buffers and mine.is_floating_point()):
                    mine.copy_(theirs)
            self.n_averaged += 1
        self._count += 1

    def _mean(self, mine, theirs):
        if self.avg_fn is not None:
            return self.avg_fn(mine, theirs, self.n_averaged)
        return mine + (theirs - mine) / (self._count + 1)


def update_bn(loader, model, device=None):
    """Runs the loader's batches (of a list or tuple, the first part) through
    `model`, whose batch norms then hold the plain means of what they saw."""
    norms = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not norms:
        return
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    with holdfast.no_grad():
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
    for norm, momentum in norms.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the rates that the optimizer has to `swa_lr`, within `anneal_epochs`
    epochs, along a cosine ("cos") or a line ("linear"), then constant."""

    def __init__(
        self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1
    ):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "anneal_strategy must by one of 'cos' or 'linear'. "
                f"Got {anneal_strategy!r}."
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0. Got {anneal_epochs}."
            )
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else None
        if rates is not None and len(rates) != len(groups):
            raise ValueError(
                f"swa_lr must have a rate per group: {len(groups)}. Got {len(rates)}."
            )
        for i, group in enumerate(groups):
            group["swa_lr"] = swa_lr if rates is None else rates[i]
        self.anneal_epochs = anneal_epochs
        self.anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch):
        """How much of the way is done, 0 to 1."""
        if self.anneal_epochs == 0:
            return 1.0
        done = max(0.0, min(1.0, epoch / self.anneal_epochs))
        return (
            done
            if self.anneal_strategy == "linear"
            else ((1 - math.cos(math.pi * done)) / 2)
        )

    def get_lr(self):
        share = self._share(self.last_epoch)
        return [
            start + (group["swa_lr"] - start) * share
            for start, group in zip(self.base_lrs, self.optimizer.param_groups)
        ]


__getattr__ = module_getattr("torch.optim.swa_utils")
