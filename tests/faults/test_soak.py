# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The short form of ./dev soak."""

import pytest
import soak


@pytest.mark.timeout(300)
def test_everything_at_once(tmp_path):
    figures = soak.run(tmp_path, seconds=12, seed=1, round_seconds=6)
    assert not figures["failures"], figures
    for what in ("trained over shm", "trained over grpc", "cuts", "killed", "attached"):
        assert figures[what] > 0, figures
    assert figures["ended daemons"] >= 2, figures
