# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a bug report should say about the machine."""

import os
import platform
import sys

import holdfast
from holdfast.version import __version__


def get_pretty_env_info():
    """Versions and the daemon, one a line; connects if need be."""
    session = holdfast._C.default_session()
    lines = {
        "Holdfast version": __version__,
        "API followed": holdfast.__version__,
        "Daemon": f"{session.server} at {session.address} ({session.transport})",
        "Device": session.device,
        "Python version": sys.version.replace("\n", " "),
        "Platform": platform.platform(),
        "CPUs": os.cpu_count(),
    }
    try:
        import numpy

        lines["NumPy version"] = numpy.__version__
    except ImportError:
        lines["NumPy version"] = "not installed"
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def main():
    """Prints get_pretty_env_info()."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
