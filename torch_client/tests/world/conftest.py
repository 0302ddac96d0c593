# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""One daemon for all packages, over the transport that HOLDFAST_WORLD_TRANSPORT
names: "shm" (default) or "grpc"."""

import os
import subprocess
import time

import pytest

# No model hub: weights are random, configurations are written here.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def device(tmp_path_factory):
    import holdfast_torch

    socket = str(tmp_path_factory.mktemp("d") / "s")
    port = str(51000 + os.getpid() % 10000)
    daemon = subprocess.Popen(
        [
            os.environ.get("HOLDFAST_DAEMON", "holdfastd"),
            "--socket=" + socket,
            "--listen=127.0.0.1:" + port,
        ],
        stderr=subprocess.DEVNULL,
    )
    while not os.path.exists(socket):
        assert daemon.poll() is None
        time.sleep(0.01)
    grpc = os.environ.get("HOLDFAST_WORLD_TRANSPORT", "shm") == "grpc"
    session = holdfast_torch.connect("127.0.0.1:" + port if grpc else "unix:" + socket)
    yield "holdfast"
    session.close()
    daemon.terminate()
    daemon.wait()


@pytest.fixture(autouse=True)
def seeded():
    import torch

    torch.set_num_threads(1)  # small tensors: threads would only wait
    torch.manual_seed(0)
