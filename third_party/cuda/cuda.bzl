# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""CUDA code, compiled where a toolkit is found and left out where none is.

    cuda_library(name = "elementwise", srcs = ["elementwise.cc"], deps = [...])
    cuda_plugin(name = "libholdfast_cuda.so", deps = [":elementwise"])
"""

load("@local_cuda//:defs.bzl", "CUDA_FOUND", "NVCC")
load("//third_party:device_plugin.bzl", "device_plugin")

# Machine code for Hopper, and PTX that the driver compiles for every later GPU
# (kLeastMajor in kernels/cuda/cuda_device.cc).
_ARCHITECTURES = ["-gencode=arch=compute_90,code=[sm_90,compute_90]"]

# Runs nvcc ("$@"), then lists which of the tree's files in $2 it did not read:
# Bazel compiles a file again only for changes of what it includes. nvcc writes
# "./kernels/kernel.h" where the tree has "kernels/kernel.h".
_COMPILE = """
set -eu
unused=$1 inputs=$2
shift 2
"$@" -MD -MF "$unused.d"
tr -s ' \\\\' '\\n\\n' < "$unused.d" | sed 's|^\\./||' | sort -u > "$unused.read"
sort -u "$inputs" | comm -23 - "$unused.read" | grep -v ^external/ > "$unused" ||
  test $? = 1
rm "$unused.d" "$unused.read"
"""

def if_cuda(with_cuda, without = []):
    """Chooses a BUILD file's values by whether there is a toolkit."""
    return with_cuda if CUDA_FOUND else without

def _nvcc_objects_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    objects = []
    inputs = depset(
        ctx.files.srcs + ctx.files.hdrs,
        transitive = [context.headers],
    )
    list_of_inputs = ctx.actions.declare_file(ctx.label.name + ".inputs")
    names = ctx.actions.args()
    names.add_all(inputs)
    names.set_param_file_format("multiline")
    ctx.actions.write(list_of_inputs, names)
    for src in ctx.files.srcs:
        output = ctx.actions.declare_file(
            "_objs/%s/%s.o" % (ctx.label.name, src.basename),
        )
        unused = ctx.actions.declare_file(output.basename + ".unused", sibling = output)
        args = ctx.actions.args()
        args.add_all(["-c", _COMPILE, "nvcc", unused, list_of_inputs, NVCC])
        args.add_all(["-x", "cu", "-c", src, "-o", output])

        # -O1 is the host code's, which launches; device code is always -O3.
        args.add_all(["-std=c++17", "-O1", "-lineinfo"])
        args.add_all(["--expt-relaxed-constexpr", "--extended-lambda"])
        args.add_all(["-Xcompiler", "-fPIC,-Wall,-g1"])

        # 2810: nvcc takes an assignment to absl::Status for a dropped result.
        args.add_all(["-Werror", "all-warnings", "-diag-suppress", "2810"])
        args.add_all(["-DNDEBUG"])

        # An object of reductions takes 1.3 MB with it, 2.4 without.
        args.add("--compress-mode=size")
        args.add_all(_ARCHITECTURES)
        args.add_all(ctx.attr.copts)
        args.add_all(context.defines, before_each = "-D")
        for includes in [context.quote_includes, context.includes]:
            args.add_all(includes, before_each = "-I")
        args.add_all(context.system_includes, before_each = "-isystem")
        ctx.actions.run(
            executable = "/bin/bash",
            arguments = [args],
            inputs = depset([list_of_inputs], transitive = [inputs]),
            outputs = [output, unused],
            unused_inputs_list = unused,
            mnemonic = "Nvcc",
            progress_message = "Compiling %s with nvcc" % src.short_path,
            use_default_shell_env = True,
        )
        objects.append(output)
    return [DefaultInfo(files = depset(objects))]

_nvcc_objects = rule(
    implementation = _nvcc_objects_impl,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = True),
        "srcs": attr.label_list(allow_files = [".cc", ".cu"]),
    },
)

def cuda_library(name, srcs, hdrs = [], deps = [], copts = [], **kwargs):
    """cc_library of files for nvcc; empty without a toolkit.

    Left out of //..., since nvcc takes minutes: ./dev build --cuda asks for it.
    """
    if CUDA_FOUND:
        deps = deps + ["//third_party/cuda:cudart"]
        _nvcc_objects(
            name = name + "_objects",
            srcs = srcs,
            hdrs = hdrs,
            deps = deps,
            copts = copts,
            tags = ["manual"],
        )
    native.cc_library(
        name = name,
        srcs = [":" + name + "_objects"] if CUDA_FOUND else [],
        hdrs = hdrs,
        # Kernels are found through the table that they register in.
        alwayslink = True,
        tags = ["manual"],
        deps = deps if CUDA_FOUND else [],
        **kwargs
    )

def cuda_plugin(name, **kwargs):
    """device_plugin of cuda_library targets; no target without a toolkit."""
    if CUDA_FOUND:
        device_plugin(name = name, tags = ["manual"], **kwargs)
