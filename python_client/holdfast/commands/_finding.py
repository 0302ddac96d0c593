# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""One line of what `holdfast doctor` says."""

from typing import NamedTuple


class Finding(NamedTuple):
    verdict: str  # "ok", "note" or "FAIL"
    what: str
    found: str
    advice: str = ""
