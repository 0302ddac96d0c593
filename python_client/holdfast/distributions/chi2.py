# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The chi-square distribution."""

from holdfast.distributions import constraints
from holdfast.distributions.gamma import Gamma
from holdfast.distributions.parameters import broadcast_all


class Chi2(Gamma):
    """The sum of df > 0 squared standard normal numbers: Gamma(df / 2, 1 / 2)."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Chi2, _instance)
        return super().expand(batch_shape, new)

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2
