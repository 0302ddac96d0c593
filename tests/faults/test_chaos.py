# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Short forms of ./dev chaos."""

import chaos


def test_cuts_of_every_kind_leave_the_weights_bit_identical(daemon):
    figures = chaos.run_cuts(daemon, cuts=60, seed=1)
    assert figures["identical"], figures
    assert figures["cuts"] >= 60, figures
    assert set(figures["events"]) == {"reset", "half-open", "stall", "refused"}


def test_killed_clients_leave_nothing(daemon):
    figures = chaos.run_kills(daemon, kills=40, seed=1, sessions=False)
    assert not figures["leaked"], figures
    assert figures["bystander_reads"] > 50, figures


def test_cuts_around_large_transfers_lose_none(daemon):
    figures = chaos.run_bulk(daemon, cuts=40, seed=1)
    assert figures["identical"], figures
    assert figures["cuts"] >= 40, figures
