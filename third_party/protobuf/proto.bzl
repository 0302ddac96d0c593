# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""C++ code from .proto files, with the system's protoc.

    proto_cc_library(name = "wire_proto", srcs = ["wire.proto"])
    grpc_cc_library(name = "service_proto", srcs = ["service.proto"],
                    deps = [":wire_proto"])

Imports are written from the root of the repository:
`import "proto/wire.proto"` and `#include "proto/wire.pb.h"`.
"""

_ProtoFiles = provider(fields = ["transitive"])

def _protoc_impl(ctx):
    suffixes = [".pb"] + ([".grpc.pb"] if ctx.attr.grpc else [])
    headers = []
    sources = []
    for src in ctx.files.srcs:
        stem = src.basename[:-len(".proto")]
        for suffix in suffixes:
            headers.append(ctx.actions.declare_file(stem + suffix + ".h"))
            sources.append(ctx.actions.declare_file(stem + suffix + ".cc"))

    transitive = depset(
        ctx.files.srcs,
        transitive = [dep[_ProtoFiles].transitive for dep in ctx.attr.deps],
    )
    args = ctx.actions.args()
    args.add("-I.")
    args.add("-I" + ctx.genfiles_dir.path)
    args.add("--cpp_out=" + ctx.bin_dir.path)
    if ctx.attr.grpc:
        args.add("--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin")
        args.add("--grpc_out=" + ctx.bin_dir.path)
    args.add_all(ctx.files.srcs)
    ctx.actions.run(
        executable = "/usr/bin/protoc",
        arguments = [args],
        inputs = transitive,
        outputs = headers + sources,
        mnemonic = "Protoc",
        progress_message = "Generating C++ for %s" % ctx.label,
    )
    return [
        DefaultInfo(files = depset(headers + sources)),
        OutputGroupInfo(headers = depset(headers), sources = depset(sources)),
        _ProtoFiles(transitive = transitive),
    ]

_protoc = rule(
    implementation = _protoc_impl,
    attrs = {
        "deps": attr.label_list(providers = [_ProtoFiles]),
        "grpc": attr.bool(),
        "srcs": attr.label_list(allow_files = [".proto"]),
    },
)

def _generated(label):
    # Each library has a twin that carries its .proto files to importers.
    return label + "_protoc" if ":" in label else label + ":" + label.split("/")[-1] + "_protoc"

def _cc_library(name, srcs, deps, grpc, runtime, **kwargs):
    twin = name + "_protoc"
    _protoc(
        name = twin,
        srcs = srcs,
        deps = [_generated(dep) for dep in deps],
        grpc = grpc,
        visibility = kwargs.get("visibility"),
    )
    for group in ["headers", "sources"]:
        native.filegroup(
            name = name + "_" + group,
            srcs = [":" + twin],
            output_group = group,
        )
    native.cc_library(
        name = name,
        srcs = [":" + name + "_sources"],
        hdrs = [":" + name + "_headers"],
        # Generated code is not held to this project's warnings.
        copts = ["-w"],
        deps = deps + [runtime],
        **kwargs
    )

def proto_cc_library(name, srcs, deps = [], **kwargs):
    """Messages only. `deps` are other libraries made by this file."""
    _cc_library(name, srcs, deps, False, "//third_party/protobuf", **kwargs)

def grpc_cc_library(name, srcs, deps = [], **kwargs):
    """Messages and services. `deps` are other libraries made by this file."""
    _cc_library(name, srcs, deps, True, "//third_party/grpc", **kwargs)
