# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What the client asks of NVIDIA's driver (client/gpu_driver.cc): a libcuda.so.1 of
our own is in its place (fake_gpu_driver.cc), in a process that finds it first."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from holdfast.daemon import Daemon

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.mktemp("driver")
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC"]
    command += ["-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1"]
    subprocess.run([*command, HERE / "fake_gpu_driver.cc"], check=True)
    return folder


@pytest.fixture(scope="module")
def address():
    env = {"HOLDFAST_FAKE_NAME": "cuda", "HOLDFAST_FAKE_HANDLES": "cuda"}
    with Daemon("--device=fake:0,1", env=env) as daemon:
        yield daemon.shm_address


PREAMBLE = """
import ctypes, gc, sys
import numpy as np
import holdfast
from gpu_consumer import Producer, View

session = holdfast.connect(sys.argv[1])
"""


def run(address, folder, program):
    paths = [str(HERE), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment["LD_LIBRARY_PATH"] = str(folder)
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + program, address],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FAKE = """
fake = ctypes.CDLL("libcuda.so.1")
fake.fake_allocate.restype = ctypes.c_void_p
fake.fake_synchronized.restype = ctypes.c_uint64

def allocate(values, device, shared=True):
    memory = fake.fake_allocate(ctypes.c_size_t(4096), device, int(shared))
    block = (ctypes.c_char * 4096).from_address(memory)
    array = np.frombuffer(block, "float32", len(values), offset=1024)
    array[:] = values
    return array
"""


def test_out(address, driver):
    run(
        address,
        driver,
        FAKE
        + """
x = holdfast.arange(6.0, device="cuda:0").reshape(2, 3)
y = holdfast.ones(3, device="cuda:1")
# The process counts its GPUs the other way round.
assert x.__dlpack_device__() == (2, 1) and y.__dlpack_device__() == (2, 0)
view, other = View(x.t().__dlpack__()), View(y.__dlpack__())
assert view.device == (2, 1) and view.array.tolist() == [[0, 3], [1, 4], [2, 5]]
assert other.device == (2, 0) and other.array.tolist() == [1, 1, 1]
view.array[0, 0] = 50
assert x.tolist() == [[50, 1, 2], [3, 4, 5]]
again = View(x.__dlpack__(max_version=(1, 0)))
assert again.data == view.data and fake.fake_opened() == 2  # a segment once
for one in (view, other, again):
    one.close()
assert fake.fake_opened() == 2
last = View(x.__dlpack__())
session.close()
assert fake.fake_opened() == 1  # what is looked at
last.close()
assert fake.fake_opened() == 0
""",
    )


def test_in(address, driver):
    run(
        address,
        driver,
        FAKE
        + """
from holdfast import device_arrays

through_host = device_arrays._through_host
device_arrays._through_host = None
a = allocate([1, 2, 3, 4, 5, 6], 1)
producer = Producer(a.reshape(2, 3).T, ordinal=1)
x = holdfast.from_dlpack(producer)
assert producer.stream == 1 and fake.fake_synchronized() == 1
assert str(x.device) == "cuda:0" and x.tolist() == [[1, 4], [2, 5], [3, 6]]
a[:] = 0
assert x.sum().item() == 21
b = allocate([1, 2], 0)
assert str(holdfast.from_dlpack(Producer(b, ordinal=0)).device) == "cuda:1"
holdfast.from_dlpack(Producer(b, ordinal=0).capsule())
assert fake.fake_synchronized() == 2**64 - 1  # no stream was named: all

class Interface:
    __cuda_array_interface__ = {
        "shape": (2,), "typestr": "<f4", "data": (b.ctypes.data, False),
        "version": 3, "stream": 77,
    }

x = holdfast.from_dlpack(Interface())
assert x.tolist() == [1, 2] and str(x.device) == "cuda:1"
assert fake.fake_synchronized() == 77
# Memory that no other process can open.
calls = []
device_arrays._through_host = lambda *a: calls.append(1) or through_host(*a)
c = allocate([7, 8, 9], 1, shared=False)
x = holdfast.from_dlpack(Producer(c, ordinal=1))
assert calls == [1] and x.tolist() == [7, 8, 9] and str(x.device) == "cuda:0"
assert holdfast.from_dlpack(Producer(c[::-1], ordinal=1)).tolist() == [9, 8, 7]
""",
    )


def test_without_a_driver(address, tmp_path):
    run(
        address,
        tmp_path,
        """
try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    x = holdfast.ones(2, device="cuda")
    for action in (x.__dlpack__, lambda: x.__dlpack_device__()):
        try:
            action()
        except RuntimeError as error:
            assert "libcuda.so.1" in str(error) and ".cpu()" in str(error), error
        else:
            raise AssertionError("no error")
""",
    )
