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

# The version script of a program that shows what Abseil's archives define, and
# nothing else.
_ABSL_SYMBOLS = """
set -eu
echo "{ global:"
nm -g --defined-only "$@" | awk 'NF == 3 && $3 ~ /4absl|^Absl/ { print $3 ";" }' |
  LC_ALL=C sort -u
echo "local: *; };"
"""

def _write_absl_symbols(ctx, archives):
    listed = ctx.execute(["/bin/sh", "-c", _ABSL_SYMBOLS, "nm"] + archives)
    if listed.return_code != 0:
        fail("nm cannot list the symbols of Abseil's archives: " + listed.stderr)
    ctx.file("absl_symbols.lds", listed.stdout)

def _system_archives_impl(ctx):
    absl = []
    for entry in ctx.path(_LIB_DIR).readdir():
        name = entry.basename
        if not name.endswith(".a"):
            continue
        if [p for p in _ARCHIVE_PREFIXES if name.startswith(p)]:
            ctx.symlink(entry, name)
        if name.startswith("libabsl_"):
            ctx.file("placeholders/" + name, "!<arch>\n")
            absl.append(str(entry))
    _write_absl_symbols(ctx, absl)
    ctx.file("BUILD.bazel", """
filegroup(
    name = "archives",
    srcs = glob(["*.a"]),
    visibility = ["//visibility:public"],
)

exports_files(["absl_symbols.lds"])

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
    a device plugin that it opens at run time brings none of its own. It exports
    nothing else.

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
            [
                "-rdynamic",
                "-Wl,--version-script=external/system_archives/absl_symbols.lds",
                "-Wl,--whole-archive",
            ] +
            ABSL_LIBS +
            ["-Wl,--no-whole-archive"]
        )
    native.cc_binary(
        name = name,
        additional_linker_inputs = [
            "@system_archives//:absl_symbols.lds",
            "@system_archives//:archives",
        ],
        linkopts = linkopts + select({
            "//third_party/sanitizers:asan": [],
            "//third_party/sanitizers:tsan": [],
            "//conditions:default": archives,
        }),
        deps = deps + ["//third_party/sanitizers:options"],
        **kwargs
    )
