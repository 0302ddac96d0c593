# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What a wait is on this machine without a daemon: this program sends a byte to a child
of its own and waits for it to come back, again and again, until it is killed:
`soak_control.py LOG`."""

import os
import sys
import time

from soak_log import Log


def main():
    log = Log(sys.argv[1])
    there, back = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(there[1])
        while byte := os.read(there[0], 1):
            os.write(back[1], byte)
        os._exit(0)
    os.close(there[0])
    while True:
        with log.timed("a byte there and back, without a daemon"):
            os.write(there[1], b"x")
            os.read(back[0], 1)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
