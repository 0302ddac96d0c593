# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""biject_to and transform_to, and the transforms they make, against PyTorch."""

import numpy as np
import pytest

import holdfast
from holdfast import distributions as D
from torch_peer import assert_close, assert_same_results, leaves, torch

pytestmark = pytest.mark.usefixtures("torch")
CLOSE = {"rtol": 1e-9, "atol": 1e-11}
REAL = np.random.default_rng(6).normal(size=(2, 3, 3)) * 2
MAKERS = {
    "real": lambda C: C.real,
    "real_vector": lambda C: C.real_vector,
    "positive": lambda C: C.positive,
    "greater_than": lambda C: C.greater_than(2.0),
    "greater_than_eq": lambda C: C.greater_than_eq(-1.5),
    "less_than": lambda C: C.less_than(2.0),
    "unit_interval": lambda C: C.unit_interval,
    "interval": lambda C: C.interval(-1.0, 3.0),
    "half_open_interval": lambda C: C.half_open_interval(-1.0, 3.0),
    "independent": lambda C: C.independent(C.positive, 1),
    "simplex": lambda C: C.simplex,
    "lower_cholesky": lambda C: C.lower_cholesky,
}
BIJECTIVE = [name for name in MAKERS if name != "lower_cholesky"]
BOTH = [("transform_to", n) for n in MAKERS] + [("biject_to", n) for n in BIJECTIVE]


@pytest.mark.parametrize("registry,name", BOTH)
def test_transforms(registry, name):
    constraint = MAKERS[name](D.constraints)
    ours = getattr(D, registry)(constraint)
    theirs = getattr(torch.distributions, registry)(
        MAKERS[name](torch.distributions.constraints)
    )
    a, b = leaves([REAL])
    y, y2 = ours(a[0]), theirs(b[0])
    assert_same_results(y, y2, a, b, **CLOSE)
    assert constraint.check(y).all().item()
    assert_close(ours.inv(y.detach()), theirs.inv(y2.detach()), **CLOSE)
    assert ours.bijective == theirs.bijective
    assert ours.domain.event_dim == theirs.domain.event_dim
    assert ours.codomain.event_dim == theirs.codomain.event_dim
    shape = tuple(ours.forward_shape((2, 3, 3)))
    assert shape == tuple(y.shape)
    assert tuple(ours.inverse_shape(shape)) == (2, 3, 3)
    assert ours == getattr(D, registry)(constraint)
    if registry == "biject_to":
        assert ours.bijective
        x, x2 = holdfast.tensor(REAL), torch.tensor(REAL)
        assert_close(
            ours.log_abs_det_jacobian(x, ours(x)),
            theirs.log_abs_det_jacobian(x2, theirs(x2)),
            **CLOSE,
        )


def test_what_has_no_transform():
    for registry, constraint in (
        (D.biject_to, D.constraints.lower_cholesky),
        (D.biject_to, D.constraints.boolean),
        (D.transform_to, D.constraints.nonnegative_integer),
    ):
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            registry(constraint)
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        D.biject_to.register(3, lambda constraint: None)
    with pytest.raises(ValueError, match="Too few dimensions"):
        D.transforms.StickBreakingTransform().forward_shape(())


def test_own_constraints():
    class Even(D.constraints.Constraint):
        pass

    @D.transform_to.register(Even)
    def to_even(constraint):
        return D.transforms.AffineTransform(0, 2)

    assert D.transform_to(Even())(holdfast.ones(1)).tolist() == [2.0]


def test_parameters_of_any_support_are_learnt():
    """A program: a distribution's parameters by transform_to of their constraints."""
    holdfast.manual_seed(0)
    data = D.Weibull(2.0, 3.0).sample((500,))
    free = {
        n: holdfast.zeros((), requires_grad=True) for n in D.Weibull.arg_constraints
    }
    optimizer = holdfast.optim.Adam(free.values(), lr=0.05)
    for _ in range(150):
        parameters = {
            n: D.transform_to(D.Weibull.arg_constraints[n])(x) for n, x in free.items()
        }
        loss = -D.Weibull(**parameters).log_prob(data).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert parameters["scale"].item() == pytest.approx(2, abs=0.15)
    assert parameters["concentration"].item() == pytest.approx(3, abs=0.3)
