# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Finds the CUDA toolkit: $CUDA_HOME, else /usr/local/cuda, else none.

Where there is none, the same labels and names exist and are empty, so that the
rest of the build needs no second version of itself.
"""

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**"], allow_empty = True),
    includes = ["include"],
)
"""

_LIBRARY = """
cc_library(
    name = "{name}",
    linkopts = {linkopts},
    deps = [":headers"],
)
"""

# The run-time library goes in statically; the large ones are found where the
# driver is, at run time.
_LINKOPTS = {
    "cublas": ["-lcublas", "-lcublasLt"],
    "cudart": ["-lcudart_static", "-ldl", "-lrt", "-pthread"],
    "cudnn": ["-lcudnn"],
    "nvrtc": ["-lnvrtc"],
}

def _local_cuda_impl(ctx):
    root = ctx.path(ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    nvcc = root.get_child("bin").get_child("nvcc")
    found = nvcc.exists
    if found:
        ctx.symlink(root.get_child("include"), "include")
    build = _BUILD
    for name, linkopts in _LINKOPTS.items():
        build += _LIBRARY.format(
            name = name,
            linkopts = ["-L%s/lib64" % root] + linkopts if found else [],
        )
    ctx.file("BUILD.bazel", build)
    ctx.file("defs.bzl", "CUDA_FOUND = %s\nNVCC = %r\n" % (found, str(nvcc)))

local_cuda = repository_rule(
    implementation = _local_cuda_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
