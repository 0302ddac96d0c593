# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What all constraints are."""


class Constraint:
    """A set. `event_dim` dimensions, the last ones, make one element of it."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """True where value is in the set: a bool tensor of the shape of value
        without its last event_dim dimensions."""
        raise NotImplementedError

    def __repr__(self):
        return self.__class__.__name__.strip("_") + "()"
