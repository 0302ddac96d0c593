# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Progress bars for large files, where somebody watches."""

import contextlib
import sys
import warnings

# Smaller files are through before a bar could be read.
_WORTH_SHOWING = 64 << 20


def _in_notebook():
    shell = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def watched():
    """Whether a bar would be seen: on a terminal or in a notebook."""
    try:
        return _in_notebook() or sys.stderr.isatty()
    except (AttributeError, ValueError):  # no stderr, or a closed one
        return False


@contextlib.contextmanager
def bar(what, total):
    """`advance(bytes)` for a transfer of `total` bytes; draws when it takes long."""
    if total < _WORTH_SHOWING or not watched():
        yield lambda count: None
        return
    try:
        with warnings.catch_warnings():
            # It would warn that a notebook without widgets gets text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        yield lambda count: None
        return
    with tqdm(
        desc=what, total=total, unit="B", unit_scale=True, leave=False, delay=0.5
    ) as shown:
        yield shown.update
