# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A program that has nothing to do with a daemon and takes so much of a processor, in
bursts of some milliseconds as hostile programs do: `neighbour.py PART`."""

import os
import sys
import threading
import time

BURST = 0.005


def main():
    part = min(float(sys.argv[1]), 0.99)
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()
    while True:
        begin = time.process_time()
        while time.process_time() - begin < BURST:
            pass
        time.sleep(BURST * (1 / part - 1))


if __name__ == "__main__":
    main()
