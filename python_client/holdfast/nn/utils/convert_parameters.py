# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""All parameters as one vector, and back."""

import holdfast


def parameters_to_vector(parameters):
    """1-D tensor of all elements of all parameters, one after the other."""
    return holdfast.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Writes the elements of a 1-D tensor into the parameters, in order."""
    if not isinstance(vec, holdfast.Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    position = 0
    with holdfast.no_grad():
        for parameter in parameters:
            count = parameter.numel()
            part = vec[position : position + count]
            parameter.copy_(part.reshape(parameter.shape))
            position += count
