# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`python -m holdfast.service.become`: a process that turns into the own daemon.

`--unit` first: systemd started it. The rest are holdfastd's flags.
"""

import sys

from holdfast.service import own_daemon


def main():
    more = sys.argv[1:]
    unit = more[:1] == ["--unit"]
    try:
        own_daemon.become(more[1:] if unit else more, unit)
    except (own_daemon.OwnDaemonError, OSError) as error:
        sys.exit(f"holdfast: {error}")


if __name__ == "__main__":
    main()
