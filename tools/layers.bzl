# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Which folder may depend on which. The one table: the package groups in the
top-level BUILD.bazel are made from it, and check_layers.py reads it."""

LAYERS = {
    "autograd": ["ops"],
    "client": ["ops", "proto"],
    "kernels": ["ops"],
    "ops": [],
    "proto": ["ops"],
    "python_client": ["client"],
    "server": ["autograd", "kernels", "ops", "proto"],
}

# These may depend on anything, and nothing depends on them.
OPEN_FOLDERS = ["benchmarks", "examples", "tests"]

# Libraries from outside, by the start of the included path, and the folders
# that may include them. Others (the standard library, Abseil) are free.
EXTERNAL = {
    "Python.h": ["python_client"],
    "cublas": ["kernels"],
    "cuda": ["kernels"],
    "cudnn": ["kernels"],
    "dnnl": ["kernels"],
    "google/protobuf/": ["client", "proto", "server"],
    "grpc/": ["client", "proto", "server"],
    "grpcpp/": ["client", "proto", "server"],
    "httplib.h": ["server"],
    "hwy/": ["kernels"],
    "oneapi/": ["kernels"],
    "openssl/": ["client", "server"],
    "spdlog/": ["server"],
}

# What lies in a folder is in its namespace: two families of kernels have functions
# of the same names.
NAMESPACES = {
    "kernels/cpu": "cpu",
    "kernels/cuda": "cuda",
}

def layer_package_groups():
    """Makes `//:<folder>_users` for each folder: who may depend on it."""
    for folder in LAYERS:
        users = [user for user in LAYERS if folder in LAYERS[user]]
        native.package_group(
            name = folder + "_users",
            packages = [
                "//%s/..." % user
                for user in [folder] + users + OPEN_FOLDERS
            ],
        )
