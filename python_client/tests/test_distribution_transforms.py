# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms and constraints of distributions against PyTorch."""

import copy

import numpy as np
import pytest

import holdfast
from holdfast import distributions as D
from torch_peer import assert_close, leaves, torch

pytestmark = pytest.mark.usefixtures("torch")
CLOSE = {"rtol": 1e-9, "atol": 1e-11}
REAL = np.random.default_rng(5).normal(size=(2, 3, 4)) * 2
SCALE = np.array([0.5, -2.0, 1.0, 3.0])

TRANSFORMS = {
    "exp": (lambda T, t: T.ExpTransform(), REAL),
    "sigmoid": (lambda T, t: T.SigmoidTransform(), REAL),
    "softplus": (lambda T, t: T.SoftplusTransform(), REAL),
    "tanh": (lambda T, t: T.TanhTransform(), REAL),
    "power": (lambda T, t: T.PowerTransform(t(SCALE)), np.exp(REAL)),
    "affine": (lambda T, t: T.AffineTransform(t(SCALE + 1), t(SCALE)), REAL),
    "affine_numbers": (lambda T, t: T.AffineTransform(1.5, -2.0), REAL),
    "affine_events": (lambda T, t: T.AffineTransform(1.5, t(SCALE), event_dim=1), REAL),
    "inverse": (lambda T, t: T.ExpTransform().inv, np.exp(REAL)),
    "compose": (
        lambda T, t: T.ComposeTransform(
            [T.AffineTransform(0.5, t(SCALE)), T.TanhTransform(), T.ExpTransform()]
        ),
        REAL,
    ),
    "compose_inverse": (
        lambda T, t: T.ComposeTransform(
            [T.AffineTransform(0.5, 2.0), T.ExpTransform()]
        ).inv,
        np.exp(REAL),
    ),
    "compose_events": (
        lambda T, t: T.ComposeTransform(
            [T.AffineTransform(0.5, 2.0, event_dim=2), T.ExpTransform()]
        ),
        REAL,
    ),
    "independent": (
        lambda T, t: T.IndependentTransform(T.ExpTransform(), 2),
        REAL,
    ),
    "empty": (lambda T, t: T.ComposeTransform([]), REAL),
    "reshape": (lambda T, t: T.ReshapeTransform((3, 4), (2, 6)), REAL),
    "corr_cholesky": (lambda T, t: T.CorrCholeskyTransform(), REAL[..., :3] / 3),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_values_inverses_and_jacobians(name):
    make, argument = TRANSFORMS[name]
    ours = make(D.transforms, holdfast.tensor)
    theirs = make(torch.distributions.transforms, torch.tensor)
    (x,), (x2,) = leaves([argument])
    y, y2 = ours(x), theirs(x2)
    assert_close(y, y2, **CLOSE)
    assert_close(ours.inv(y.detach().clone()), theirs.inv(y2.detach()), rtol=1e-6)
    assert_close(ours.inv(y), x2, rtol=1e-5, atol=1e-6)
    assert_close(
        ours.log_abs_det_jacobian(x, y), theirs.log_abs_det_jacobian(x2, y2), **CLOSE
    )
    assert ours.domain.event_dim == theirs.domain.event_dim
    assert ours.codomain.event_dim == theirs.codomain.event_dim
    assert ours.bijective == theirs.bijective
    assert ours.codomain.check(y).all().item()
    for shape in (argument.shape[2:], argument.shape[1:], argument.shape):
        if len(shape) >= theirs.domain.event_dim:
            assert tuple(ours.forward_shape(shape)) == tuple(
                theirs.forward_shape(torch.Size(shape))
            )
    try:
        sign = torch.as_tensor(theirs.sign).tolist()
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            ours.sign
    else:
        assert holdfast.as_tensor(ours.sign).tolist() == sign
    again = make(D.transforms, holdfast.tensor)
    assert ours == again and ours.inv == again.inv
    assert ours != D.transforms.AffineTransform(7.0, 7.0)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "power", "affine"])
def test_jacobian_is_the_derivative(name):
    make, argument = TRANSFORMS[name]
    transform = make(D.transforms, holdfast.tensor)
    x = holdfast.tensor(argument, requires_grad=True)
    y = transform(x)
    (slope,) = holdfast.autograd.grad(y.sum(), x)
    expected = transform.log_abs_det_jacobian(x, y).detach()
    np.testing.assert_allclose(
        slope.abs().log().numpy(), expected.numpy(), rtol=1e-6, atol=1e-8
    )


def test_caches():
    for make, argument in TRANSFORMS.values():
        transform = make(D.transforms, holdfast.tensor).with_cache()
        x = holdfast.tensor(argument)
        y = transform(x)
        assert transform.inv(y) is x
        assert holdfast.equal(transform(x), y)
    copied = copy.deepcopy(D.transforms.ExpTransform(cache_size=1))
    assert copied == D.transforms.ExpTransform()
    with pytest.raises(ValueError, match="cache_size must be 0 or 1. Got 2"):
        D.transforms.ExpTransform(cache_size=2)


def test_transforms_that_lose_something():
    x = holdfast.tensor([[1.0, -2.0, 0.5]])
    assert D.transforms.AbsTransform()(x).tolist() == [[1.0, 2.0, 0.5]]
    softmax = D.transforms.SoftmaxTransform()
    y = softmax(x)
    assert holdfast.allclose(softmax(softmax.inv(y)), y)
    for transform in (softmax, D.transforms.AbsTransform()):
        assert not transform.bijective
        with pytest.raises(NotImplementedError):
            transform.log_abs_det_jacobian(x, y)
    with pytest.raises(ValueError, match="Too few dimensions"):
        D.transforms.IndependentTransform(D.transforms.ExpTransform(), 3)(x)


MATRIX = np.array([[2.0, 0.0], [1.0, 3.0]])
VALUES = {
    "boolean": [0.0, 1.0, 0.5, np.nan],
    "nonnegative_integer": [0.0, 3.0, -1.0, 0.5, np.nan],
    "positive_integer": [0.0, 3.0, 1.0, 1.5],
    "real": [0.0, np.nan, 5.0],
    "real_vector": [[0.0, np.nan], [1.0, 2.0]],
    "positive": [0.0, 1.0, -1.0, np.nan],
    "unit_interval": [0.0, 1.0, 1.1, -0.1, np.nan],
    "simplex": [[0.5, 0.5], [0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0]],
    "one_hot": [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]],
    "lower_triangular": [MATRIX, MATRIX.T, -MATRIX],
    "lower_cholesky": [MATRIX, MATRIX.T, -MATRIX],
    "square": [MATRIX, MATRIX],
    "symmetric": [MATRIX, MATRIX + MATRIX.T],
    "corr_cholesky": [
        np.linalg.cholesky([[1.0, 0.3], [0.3, 1.0]]),
        np.linalg.cholesky([[1.0, 0.3], [0.3, 1.1]]),
        MATRIX,
    ],
    "positive_semidefinite": [MATRIX + MATRIX.T, -MATRIX - MATRIX.T, 0 * MATRIX],
    "positive_definite": [MATRIX + MATRIX.T, -MATRIX - MATRIX.T, 0 * MATRIX],
}


@pytest.mark.parametrize("name", VALUES)
def test_constraints(name):
    value = np.array(VALUES[name], np.float64)
    ours = getattr(D.constraints, name)
    theirs = getattr(torch.distributions.constraints, name)
    result = ours.check(holdfast.tensor(value))
    assert result.tolist() == theirs.check(torch.tensor(value)).tolist()
    assert ours.event_dim == theirs.event_dim
    assert ours.is_discrete == theirs.is_discrete


@pytest.mark.parametrize(
    "make",
    [
        lambda C: C.greater_than(1.0),
        lambda C: C.greater_than_eq(1.0),
        lambda C: C.less_than(1.0),
        lambda C: C.interval(0.0, 1.0),
        lambda C: C.half_open_interval(0.0, 1.0),
        lambda C: C.integer_interval(0, 2),
    ],
)
def test_constraints_with_bounds(make):
    value = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.nan, np.inf]
    ours, theirs = make(D.constraints), make(torch.distributions.constraints)
    result = ours.check(holdfast.tensor(value)).tolist()
    assert result == theirs.check(torch.tensor(value)).tolist()
    assert repr(ours) == repr(theirs)


def test_dependent_constraints():
    support = D.Uniform.support
    assert D.constraints.is_dependent(support) and support.event_dim == 0
    with pytest.raises(ValueError, match="dependent"):
        D.constraints.dependent.check(holdfast.ones(2))
    with pytest.raises(NotImplementedError, match="determined statically"):
        D.constraints.dependent.event_dim
    with pytest.raises(ValueError, match="Expected value.dim"):
        D.constraints.real_vector.check(holdfast.tensor(1.0))


def test_transforms_of_slices():
    """cat and stack, as constraints and as transforms, piece by piece."""

    def parts(T):
        return [T.ExpTransform(), T.AffineTransform(1.0, 2.0), T.TanhTransform()]

    x, x2 = holdfast.tensor(REAL), torch.tensor(REAL)
    theirs = torch.distributions.transforms
    for ours, peer, dim in (
        (D.CatTransform(parts(D), -1, [1, 1, 2]), theirs.CatTransform, -1),
        (D.CatTransform(parts(D), 1), theirs.CatTransform, 1),
    ):
        y2 = peer(parts(theirs), dim, ours.lengths)(x2)
        y = ours(x)
        assert_close(y, y2, **CLOSE)
        assert_close(ours.inv(y), x2, rtol=1e-6, atol=1e-8)
        jacobian = peer(parts(theirs), dim, ours.lengths).log_abs_det_jacobian(x2, y2)
        assert_close(ours.log_abs_det_jacobian(x, y), jacobian, **CLOSE)
        assert ours.codomain.check(y).all().item() and ours.bijective
    ours, peer = D.StackTransform(parts(D), 1), theirs.StackTransform(parts(theirs), 1)
    y, y2 = ours(x), peer(x2)
    assert_close(y, y2, **CLOSE)
    assert_close(ours.inv(y), x2, rtol=1e-6, atol=1e-8)
    jacobian = peer.log_abs_det_jacobian(x2, y2)
    assert_close(ours.log_abs_det_jacobian(x, y), jacobian, **CLOSE)
    assert ours.codomain.check(y).tolist() == peer.codomain.check(y2).tolist()
    c = D.constraints
    for make in (c.stack, c.cat):
        one = make([c.positive, c.real, c.unit_interval], 1)
        again = D.biject_to(one)(x)
        assert one.check(again).all().item()
    with pytest.raises(ValueError, match="size 3"):
        ours(x[:, :2])
    with pytest.raises(ValueError, match="size 4"):
        D.CatTransform(parts(D), -1, [1, 1, 2])(x[..., :3])
    with pytest.raises(ValueError, match="different numbers of elements"):
        D.ReshapeTransform((3,), (2, 2))
    with pytest.raises(ValueError, match="Shape mismatch"):
        D.ReshapeTransform((3,), (3, 1))(x)
    with pytest.raises(ValueError, match=r"n \(n - 1\) / 2. Got 4"):
        D.CorrCholeskyTransform()(x)


def test_the_distribution_function_as_a_transform():
    ours = D.CumulativeDistributionTransform(D.Normal(0.5, holdfast.tensor(SCALE[2:])))
    theirs = torch.distributions.CumulativeDistributionTransform(
        torch.distributions.Normal(0.5, torch.tensor(SCALE[2:]))
    )
    x, x2 = holdfast.tensor(REAL[..., :2]), torch.tensor(REAL[..., :2])
    y, y2 = ours(x), theirs(x2)
    assert_close(y, y2, **CLOSE)
    assert_close(ours.inv(y), theirs.inv(y2), rtol=1e-6)
    assert_close(
        ours.log_abs_det_jacobian(x, y), theirs.log_abs_det_jacobian(x2, y2), **CLOSE
    )
