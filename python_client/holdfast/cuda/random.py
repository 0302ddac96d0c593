# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.cuda.random: the one stream of random numbers that a session has."""

from holdfast.cuda import (  # noqa: F401
    get_rng_state as get_rng_state,
    get_rng_state_all as get_rng_state_all,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    manual_seed_all as manual_seed_all,
    seed as seed,
    seed_all as seed_all,
    set_rng_state as set_rng_state,
    set_rng_state_all as set_rng_state_all,
)
