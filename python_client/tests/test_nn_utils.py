# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Gradient clipping; parameters as a vector."""

import math

import numpy as np
import pytest

import holdfast
from holdfast import nn

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


def with_gradients(*gradients):
    parameters = []
    for gradient in gradients:
        parameter = nn.Parameter(holdfast.zeros(len(gradient)))
        parameter.grad = holdfast.tensor(gradient)
        parameters.append(parameter)
    return [*parameters, nn.Parameter(holdfast.zeros(2))]


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
def test_clip_grad_norm(norm_type):
    gradients = [[3.0, -4.0], [0.5, 1.0, -12.0]]
    parameters = with_gradients(*gradients)
    flat = np.concatenate(gradients)
    norm = np.linalg.norm(flat, norm_type)
    total = nn.utils.clip_grad_norm_(parameters, 2.0, norm_type)
    assert total.item() == pytest.approx(norm, rel=1e-5)
    clipped = np.concatenate([p.grad.numpy() for p in parameters[:2]])
    np.testing.assert_allclose(clipped, flat * 2.0 / norm, rtol=1e-5)


def test_clip_grad_norm_below_the_limit_changes_nothing():
    parameters = with_gradients([0.25, 0.5])
    nn.utils.clip_grad_norm_(parameters, 10.0)
    assert parameters[0].grad.tolist() == [0.25, 0.5]
    assert nn.utils.clip_grad_norm_(parameters[1], 1.0).item() == 0


def test_clip_grad_norm_of_nonfinite_gradients():
    parameters = with_gradients([math.inf, 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    parameters = with_gradients([3.0, -4.0, 0.5])
    nn.utils.clip_grad_value_(parameters, 1)
    assert parameters[0].grad.tolist() == [1.0, -1.0, 0.5]


def test_vector_round_trip():
    model = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert tuple(vector.shape) == (8,)
    nn.utils.vector_to_parameters(vector.detach() * 2, model.parameters())
    assert holdfast.allclose(
        nn.utils.parameters_to_vector(model.parameters()), vector * 2
    )
    with pytest.raises(TypeError, match="expected Tensor"):
        nn.utils.vector_to_parameters([1.0], model.parameters())
