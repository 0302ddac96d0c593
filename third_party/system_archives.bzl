# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Static archives of system libraries, and the binary rule that links them.

`-lgrpc++` normally finds the shared library. A directory that holds only
archives, searched first, turns the same flag into a static link, so that the
choice is made by the final binary and libraries are compiled once for both.
"""

load(":link_flags.bzl", "ABSL_LIBS")

_LIB_DIR = "/usr/lib/x86_64-linux-gnu"

# What a relocatable daemon should not need at run time. Everything else is
# shared: oneDNN and spdlog have no archive, and archives of Abseil, protobuf
# and RE2 are not position independent, so no shared object can hold them.
_ARCHIVE_PREFIXES = [
    "libabsl_",
    "libaddress_sorting.",
    "libcares.",
    "libcrypto.",
    "libgpr.",
    "libgrpc.",
    "libgrpc++.",
    "libgrpc++_reflection.",
    "libprotobuf.",
    "libre2.",
    "libssl.",
    "libupb.",
    "libz.",
]

def _system_archives_impl(ctx):
    for entry in ctx.path(_LIB_DIR).readdir():
        name = entry.basename
        if not name.endswith(".a"):
            continue
        if [p for p in _ARCHIVE_PREFIXES if name.startswith(p)]:
            ctx.symlink(entry, name)
        if name.startswith("libabsl_"):
            ctx.file("placeholders/" + name, "!<arch>\n")
    ctx.file("BUILD.bazel", """
filegroup(
    name = "archives",
    srcs = glob(["*.a"]),
    visibility = ["//visibility:public"],
)

filegroup(
    name = "placeholders",
    srcs = glob(["placeholders/*.a"]),
    visibility = ["//visibility:public"],
)
""")

system_archives = repository_rule(
    implementation = _system_archives_impl,
    local = True,
)

def relocatable_cc_binary(
        name,
        linkopts = [],
        deps = [],
        opens_plugins = False,
        **kwargs):
    """cc_binary that links gRPC, protobuf and Abseil from their archives.

    With `opens_plugins` the binary holds all of Abseil and exports it, because
    a device plugin that it opens at run time brings none of its own.

    Sanitizer builds stay with the shared libraries, whose names are what the
    suppressions go by.
    """
    archives = [
        "-Lexternal/system_archives",
        # Shared libraries (cpp-httplib) bring an OpenSSL of their own: two
        # copies must not take functions from each other.
        "-Wl,--exclude-libs,libcrypto.a:libssl.a:libz.a",
    ]
    if opens_plugins:
        archives += (
            ["-rdynamic", "-Wl,--whole-archive"] +
            ABSL_LIBS +
            ["-Wl,--no-whole-archive"]
        )
    native.cc_binary(
        name = name,
        additional_linker_inputs = ["@system_archives//:archives"],
        linkopts = linkopts + select({
            "//third_party/sanitizers:asan": [],
            "//third_party/sanitizers:tsan": [],
            "//conditions:default": archives,
        }),
        deps = deps + ["//third_party/sanitizers:options"],
        **kwargs
    )
