# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shared libraries that the daemon opens for a device."""

_SCRIPT = "//third_party:device_plugin.lds"

def device_plugin(name, deps, **kwargs):
    """The library lib<...>.so of a device (kernels/device_plugin.h).

    It holds a copy of all it uses of the tree, which nobody else sees. Abseil
    alone comes from the daemon: an archive of placeholders stands for each of
    Abseil's libraries, so that no second copy is loaded beside the daemon's.
    tools/check_symbols.py looks at what came out.
    """
    native.cc_binary(
        name = name,
        additional_linker_inputs = [
            _SCRIPT,
            "@system_archives//:placeholders",
        ],
        linkopts = ["-Wl,--version-script=$(location %s)" % _SCRIPT] + select({
            "//third_party/sanitizers:asan": [],
            "//third_party/sanitizers:tsan": [],
            "//conditions:default": ["-Lexternal/system_archives/placeholders"],
        }),
        linkshared = True,
        deps = deps,
        **kwargs
    )
