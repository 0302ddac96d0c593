# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Whose files these are: PyPI's `holdfast` is another project with a package of the
same name, and pip lets each overwrite the other's files."""

import os

# What pip knows the client as. Its package is `holdfast`.
NAME = "holdfast-tensors"
SERVER_NAME = "holdfast-tensors-server"

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_AGAIN = f"pip install --force-reinstall {NAME.replace('-', '_')}-*.whl"


def problem():
    """What another project's files do to this package, and how to mend it; None if
    there are none."""
    import holdfast

    if holdfast.__file__ is None:
        return (
            f"the package {_FOLDER}/holdfast has lost its __init__.py, as when PyPI's "
            f"`holdfast`, which is another project, was removed: {_AGAIN}"
        )
    infos = [name for name in os.listdir(_FOLDER) if name.endswith(".dist-info")]
    found = [name for name in infos if name.startswith("holdfast-")]
    if not found:
        return None
    version = found[0].removeprefix("holdfast-").removesuffix(".dist-info")
    return (
        f"PyPI's `holdfast` {version}, which is another project, is installed in "
        f"{_FOLDER} and shares files with this package: pip uninstall holdfast, then "
        f"{_AGAIN}"
    )


def check(version):
    """At import: warns where our own metadata is not there, but another project's is.

    Where ours is, this is one look at the disk; `holdfast doctor` looks closer.
    """
    ours = f"{_FOLDER}/{NAME.replace('-', '_')}-{version}.dist-info"
    if not os.path.exists(ours) and (found := problem()):
        import warnings

        warnings.warn(found, stacklevel=3)
