# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Moving arrays between NumPy and the daemon, against plain memcpy.

  upload     holdfast.from_numpy of 100 MB, until the tensor may be used
  numpy      .numpy() of 100 MB and of 4 KB: constant time over shared memory
  gRPC       the same through the network stack, bytes per second
"""

import statistics
import sys
import time

import numpy as np

import daemon
import peer
import report


def median_seconds(repeats, run):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        keep = run()
        times.append(time.perf_counter() - start)
        del keep
    return statistics.median(times)


def main():
    args = report.parser(__doc__).parse_args()
    import holdfast

    repeats = 3 if args.quick else 15
    array = np.random.default_rng(0).random(25_000_000, dtype=np.float32)
    small = array[:1024].copy()
    target = np.empty_like(array)
    r = report.Report(f"transfer: 100 MB, {peer.threads()} threads")

    def copy():
        np.copyto(target, array)

    def upload():
        tensor = holdfast.from_numpy(array)
        holdfast.synchronize()
        return tensor

    with daemon.running() as d:
        holdfast.connect("unix:" + d["socket"])
        for _ in range(3):
            upload()
            copy()
        # In turn, so that both see the same machine.
        ours, memcpy = [], []
        for _ in range(repeats):
            ours.append(median_seconds(1, upload))
            memcpy.append(median_seconds(1, copy))
        rate = array.nbytes / statistics.median(ours) / 1e9
        r.add(
            "upload 100 MB, shm",
            rate,
            "GB/s",
            array.nbytes / statistics.median(memcpy) / 1e9,
            target_ratio=0.8,
            higher=True,
        )
        # Copies: what from_numpy() made would give the array itself.
        big_tensor, small_tensor = holdfast.tensor(array), holdfast.tensor(small)
        assert np.array_equal(big_tensor.numpy(), array)
        big = median_seconds(50, big_tensor.numpy) * 1e6
        little = median_seconds(50, small_tensor.numpy) * 1e6
        r.add(".numpy() of 4 KB, shm", little, "us")
        r.add(".numpy() of 100 MB, shm", big, "us", little, target_ratio=3)
        holdfast.disconnect()

        holdfast.connect(d["listen"])
        upload()
        seconds = median_seconds(max(3, repeats // 3), upload)
        r.add(
            "upload 100 MB, gRPC",
            array.nbytes / seconds / 1e9,
            "GB/s",
            target=1,
            higher=True,
        )
        tensor = holdfast.tensor(array)
        seconds = median_seconds(max(3, repeats // 3), tensor.numpy)
        r.add(
            "download 100 MB, gRPC",
            array.nbytes / seconds / 1e9,
            "GB/s",
            target=1,
            higher=True,
        )
        holdfast.disconnect()
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
