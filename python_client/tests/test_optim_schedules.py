# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Learning-rate schedules against PyTorch's, epoch by epoch."""

import pytest

import holdfast
from holdfast import nn, optim
from torch_peer import torch

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

EPOCHS = 25
SCHEDULES = [
    lambda s, o: s.StepLR(o, 4, 0.5),
    lambda s, o: s.MultiStepLR(o, [3, 3, 10], 0.1),
    lambda s, o: s.ExponentialLR(o, 0.9),
    lambda s, o: s.ConstantLR(o, 0.25, 6),
    lambda s, o: s.LinearLR(o, 0.1, 0.8, 7),
    lambda s, o: s.PolynomialLR(o, 12, 2.0),
    lambda s, o: s.CosineAnnealingLR(o, 10, 0.01),
    lambda s, o: s.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    lambda s, o: s.LambdaLR(o, [lambda e: 0.5**e, lambda e: 1 + e]),
    lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    lambda s, o: s.OneCycleLR(o, 1.0, total_steps=EPOCHS + 1),
    lambda s, o: s.OneCycleLR(
        o, [0.5, 1.0], epochs=4, steps_per_epoch=8, anneal_strategy="linear"
    ),
    lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)], [4]
    ),
    lambda s, o: s.OneCycleLR(o, 1.0, total_steps=EPOCHS + 1, three_phase=True),
    lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 4),
    lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 5, mode="triangular2"),
    lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.95),
    lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, scale_fn=lambda x: 1 / x),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 5),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, eta_min=0.01),
    lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)]),
]


def optimizers():
    ours = [nn.Parameter(holdfast.zeros(1)) for _ in range(2)]
    theirs = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    return [
        library.SGD(
            [{"params": [first]}, {"params": [second], "lr": 0.3}],
            lr=0.1,
            momentum=0.9,
        )
        for library, (first, second) in ((optim, ours), (torch.optim, theirs))
    ]


@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step.*")
@pytest.mark.parametrize("make", SCHEDULES)
def test_schedule(make):
    ours, theirs = optimizers()
    our_schedule = make(optim.lr_scheduler, ours)
    their_schedule = make(torch.optim.lr_scheduler, theirs)
    for _ in range(EPOCHS):
        for our, their in zip(ours.param_groups, theirs.param_groups):
            assert our["lr"] == pytest.approx(their["lr"], rel=1e-9, abs=1e-12)
            assert our["momentum"] == pytest.approx(their["momentum"])
        assert our_schedule.get_last_lr() == [g["lr"] for g in ours.param_groups]
        ours.step()
        theirs.step()
        our_schedule.step()
        their_schedule.step()


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"mode": "max", "factor": 0.5, "patience": 1, "threshold_mode": "abs"},
        {"patience": 1, "cooldown": 2, "min_lr": [0.02, 0.1], "threshold": 0.1},
    ],
)
def test_reduce_on_plateau(options):
    ours, theirs = optimizers()
    our_schedule = optim.lr_scheduler.ReduceLROnPlateau(ours, **options)
    their_schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    metrics = [3, 2, 2, 2.1, 2, 1.99, 1.5, 1.6, 1.5, 1.5, 1.5, 1.4, 1.4, 1.4, 1.4]
    for metric in metrics:
        our_schedule.step(holdfast.tensor(float(metric)))
        their_schedule.step(metric)
        for our, their in zip(ours.param_groups, theirs.param_groups):
            assert our["lr"] == pytest.approx(their["lr"])


@pytest.mark.parametrize("make", [SCHEDULES[i] for i in (0, 6, 12, 14, 19, 20)])
def test_state_dict_goes_on_where_it_was(make):
    ours, other = optimizers()[0], optimizers()[0]
    one, two = make(optim.lr_scheduler, ours), make(optim.lr_scheduler, other)
    for _ in range(6):
        one.step()
    two.load_state_dict(one.state_dict())
    other.load_state_dict(ours.state_dict())
    for _ in range(6):
        one.step()
        two.step()
        assert one.get_last_lr() == two.get_last_lr()


class Factor:
    """A callable whose attributes are part of a schedule's state."""

    def __init__(self, decay):
        self.decay = decay

    def __call__(self, epoch):
        return self.decay**epoch


def a_programs_schedule(base):
    class Warmup(base):
        """Asks what schedules of programs ask their base class."""

        def get_lr(self):
            assert self._get_lr_called_within_step
            self.counts = [*getattr(self, "counts", []), self._step_count]
            return [lr * min(1, self._step_count / 4) for lr in self.base_lrs]

    return Warmup


@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step.*")
def test_schedules_of_programs():
    made = [
        a_programs_schedule(library.lr_scheduler._LRScheduler)(optimizer)
        for library, optimizer in zip((optim, torch.optim), optimizers())
    ]
    for _ in range(5):
        ours, theirs = made
        assert ours.state_dict() == theirs.state_dict()
        for schedule in made:
            schedule.step()
            assert not schedule._get_lr_called_within_step
    assert ours.counts == [1, 2, 3, 4, 5, 6]


@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step.*")
@pytest.mark.parametrize("name", ["LambdaLR", "MultiplicativeLR"])
def test_states_of_functions_go_both_ways(name):
    def schedules(decay):
        return [
            getattr(library.lr_scheduler, name)(o, [lambda e: 1.0, Factor(decay)])
            for library, o in zip((optim, torch.optim), optimizers())
        ]

    ours, theirs = schedules(0.5)
    for schedule in (ours, theirs):
        schedule.step()
    assert ours.state_dict() == theirs.state_dict()
    ours2, theirs2 = schedules(0.25)
    ours2.load_state_dict(theirs.state_dict())
    theirs2.load_state_dict(ours.state_dict())
    for schedule in (ours2, theirs2):
        assert schedule.lr_lambdas[1].decay == 0.5
        assert schedule.last_epoch == 1


def test_warm_restarts_within_an_epoch():
    ours, theirs = optimizers()
    make = [
        library.CosineAnnealingWarmRestarts
        for library in (optim.lr_scheduler, torch.optim.lr_scheduler)
    ]
    our_schedule, their_schedule = make[0](ours, 2, 2), make[1](theirs, 2, 2)
    for batch in range(40):
        our_schedule.step(batch / 3)
        their_schedule.step(batch / 3)
        assert our_schedule.get_last_lr() == pytest.approx(their_schedule.get_last_lr())
    our_schedule.step()
    their_schedule.step()
    assert our_schedule.get_last_lr() == pytest.approx(their_schedule.get_last_lr())
    with pytest.raises(ValueError, match="non-negative epoch, but got -1"):
        our_schedule.step(-1)


def test_mistakes():
    ours, _ = optimizers()
    schedules = optim.lr_scheduler
    with pytest.raises(TypeError, match="is not an Optimizer"):
        schedules.StepLR([1], 3)
    with pytest.raises(ValueError, match="Expected 2 values"):
        schedules.LambdaLR(ours, [lambda epoch: 1.0])
    with pytest.raises(KeyError, match="initial_lr"):
        schedules.StepLR(ours, 3, last_epoch=4)
    with pytest.raises(ValueError, match="Factor should be < 1.0"):
        schedules.ReduceLROnPlateau(ours, factor=1.0)
    schedule = schedules.OneCycleLR(ours, 1.0, total_steps=3)
    with pytest.raises(ValueError, match="Tried to step"):
        for _ in range(5):
            schedule.step()
    with pytest.raises(ValueError, match="one and the same optimizer"):
        other = schedules.ExponentialLR(optimizers()[0], 0.9)
        schedules.ChainedScheduler([schedules.ExponentialLR(ours, 0.9), other])
    with pytest.raises(ValueError, match="mode is invalid.*'saw'"):
        schedules.CyclicLR(ours, 0.1, 1.0, mode="saw")
    with pytest.raises(ValueError, match="integer T_mult >= 1, but got 0"):
        schedules.CosineAnnealingWarmRestarts(ours, 3, 0)
    plain = optim.Adagrad([nn.Parameter(holdfast.zeros(1))])
    with pytest.raises(ValueError, match="must support momentum.*Adagrad"):
        schedules.CyclicLR(plain, 0.1, 1.0)


def test_what_pytorch_2_added(torch):
    """Defaults and parameters: SGD's rate, fused, the optimizer of a chain."""
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], fused=True)
    assert optimizer.param_groups[0]["lr"] == 1e-3
    schedulers = torch.optim.lr_scheduler
    parts = [schedulers.ExponentialLR(optimizer, 0.5) for _ in range(2)]
    chain = schedulers.ChainedScheduler(parts, optimizer=optimizer)
    chain.step()
    assert chain.get_last_lr() == [pytest.approx(2.5e-4)]
    with pytest.raises(ValueError, match="belong to the same optimizer"):
        schedulers.ChainedScheduler(parts, optimizer=torch.optim.SGD([p]))
    plateau = schedulers.ReduceLROnPlateau(optimizer)
    assert plateau.get_last_lr() == [optimizer.param_groups[0]["lr"]]
