# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What `holdfast doctor` looks at for holdfastd --device=cuda: the driver, NVIDIA's
libraries, and Holdfast's own. Nothing here changes the machine."""

import ctypes
import glob
import os
from pathlib import Path

from holdfast.commands._finding import Finding

# What kernels/cuda/cuda_libraries.cc opens: file, name, Python package, what runs
# without it.
LIBRARIES = (
    ("libcublasLt.so.13", "cuBLAS", "nvidia-cublas", "matrix products fail"),
    (
        "libcudnn.so.9",
        "cuDNN",
        "nvidia-cudnn-cu13",
        "convolutions use Holdfast's own, slower kernels",
    ),
    ("libcufft.so.12", "cuFFT", "nvidia-cufft", "Fourier transforms fail"),
    (
        "libcusolver.so.12",
        "cuSOLVER",
        "nvidia-cusolver",
        "factorisations of matrices and linear systems fail",
    ),
)
LEAST_DRIVER = 13000  # of the runtime that is linked in: CUDA 13.0
LEAST_MAJOR = 9  # compute capability that the library has code for


def examine(needed=False):
    """Yields Findings; what is missing is a FAIL where a GPU is `needed`."""
    bad = "FAIL" if needed else "note"
    nodes = sorted(glob.glob("/dev/nvidia[0-9]*"))
    if nodes:
        yield Finding("ok", "GPU", ", ".join(nodes))
    else:
        yield Finding(
            bad,
            "GPU",
            "no /dev/nvidia0",
            "the CPU is used. With a GPU here: install its driver (Debian: "
            "nvidia-driver); in a container, start it with --gpus all",
        )
        if not needed:
            return
    yield _driver(bad)
    for library in LIBRARIES:
        yield _library(bad, *library)
    yield _plugin(bad)


def _driver(bad):
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return Finding(
            bad,
            "CUDA driver",
            str(error),
            "install NVIDIA's driver (Debian: nvidia-driver, or libcuda1 of the "
            "kernel module's version)",
        )
    status = driver.cuInit(0)
    if status:
        return Finding(
            bad,
            "CUDA driver",
            f"cuInit fails with error {status}",
            "see nvidia-smi and dmesg; after an update of the driver, restart it all",
        )
    version = ctypes.c_int()
    count = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetCount(ctypes.byref(count))
    gpus = [_gpu(driver, index) for index in range(count.value)]
    return judge_driver(bad, version.value, gpus)


def judge_driver(bad, version, gpus):
    """The Finding of a driver for CUDA `version` (13000) that sees `gpus`, a list of
    (name, major, minor)."""
    supports = f"{version // 1000}.{version % 1000 // 10}"
    names = [f"{name} ({major}.{minor})" for name, major, minor in gpus]
    found = f"CUDA {supports}: {', '.join(names) or 'no GPU'}"
    if version < LEAST_DRIVER:
        advice = "holdfastd needs a driver for CUDA 13.0 or later: install a newer one"
    elif not gpus:
        advice = "look at nvidia-smi and CUDA_VISIBLE_DEVICES"
    elif all(major < LEAST_MAJOR for _, major, _ in gpus):
        advice = (
            f"the library has code for compute capability {LEAST_MAJOR}.0 and later: "
            "build it for this GPU (third_party/cuda/cuda.bzl)"
        )
    else:
        return Finding("ok", "CUDA driver", found)
    return Finding(bad, "CUDA driver", found, advice)


def _gpu(driver, index):
    device = ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    major, minor = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, len(name), device)
    # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
    driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    return name.value.decode("utf-8", "replace"), major.value, minor.value


def library_paths(file):
    """Where the daemon looks for a library of NVIDIA's, in its order."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders += ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
    folders.append(os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/lib64")
    patterns = [
        "/usr/local/lib/python3*/dist-packages/nvidia/*/lib",
        "/usr/local/lib/python3*/site-packages/nvidia/*/lib",
        "/usr/lib/python3*/site-packages/nvidia/*/lib",
        "/opt/*/lib/python3*/site-packages/nvidia/*/lib",
    ]
    for pattern in patterns:
        folders += sorted(glob.glob(pattern))
    return [f"{folder}/{file}" for folder in folders if folder]


def _library(bad, file, name, package, without):
    paths = library_paths(file)
    for path in paths:
        if os.path.exists(path):
            return Finding("ok", name, path)
    folders = ", ".join(os.path.dirname(path) for path in paths)
    return Finding(
        bad,
        name,
        f"{file} is in none of {folders}",
        f"{without}. Install NVIDIA's CUDA toolkit, or `pip install {package}` into "
        "the system's Python, or add its folder to the daemon's LD_LIBRARY_PATH",
    )


def _plugin(bad):
    from holdfast.daemon import find_daemon

    name = "libholdfast_cuda.so"
    try:
        beside = Path(find_daemon()).resolve().parent
    except FileNotFoundError:
        return Finding(bad, name, "no daemon, so none beside it")
    folders = [
        Path(p) for p in os.environ.get("HOLDFAST_PLUGIN_PATH", "").split(":") if p
    ]
    for folder in (*folders, beside, beside.parent / "lib"):
        if (folder / name).exists():
            return Finding("ok", name, str(folder / name))
    return Finding(
        bad,
        name,
        f"not beside {beside / 'holdfastd'} nor in ../lib",
        "./dev bundle --cuda makes a folder with it",
    )
