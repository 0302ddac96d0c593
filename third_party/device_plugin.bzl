# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shared libraries that the daemon opens for a device."""

def device_plugin(name, deps, **kwargs):
    """The library lib<...>.so of a device (kernels/device_plugin.h).

    It takes Abseil, and what else its deps leave undefined, from the daemon: an
    archive of placeholders stands for each of Abseil's libraries, so that no
    second copy is loaded beside the daemon's.
    """
    native.cc_binary(
        name = name,
        additional_linker_inputs = ["@system_archives//:placeholders"],
        linkopts = select({
            "//third_party/sanitizers:asan": [],
            "//third_party/sanitizers:tsan": [],
            "//conditions:default": ["-Lexternal/system_archives/placeholders"],
        }),
        linkshared = True,
        deps = deps,
        **kwargs
    )
