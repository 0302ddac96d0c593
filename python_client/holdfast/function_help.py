# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What help() says of functions composed in Python, beside their own docstrings: an
example from function_examples.txt with what it prints, and PyTorch's page.

The extension says the same of the op table's functions (src/op_docs.cc).
"""

import os

_EXAMPLES = os.path.join(os.path.dirname(__file__), "function_examples.txt")
_PAGE = "https://docs.pytorch.org/docs/stable/generated/{}.html"
# Functions that PyTorch has not, or not under that name, and so no page.
_WITHOUT_PAGE = """
    cancel connect current_session detach disconnect empty_numpy entr keep kept lookup
    matrix_rank max_memory_allocated memory_allocated memory_reserved multigammaln ndtr
    publish published repeat reset_peak_memory_stats resize_as_ set_default_session
    symeig synchronize unpublish xlog1py
""".split()


def _with(text, more):
    """A docstring with a further paragraph, indented as the lines of its source."""
    if "\n    " in text:
        more = more.replace("\n", "\n    ")
        return f"{text.rstrip()}\n\n    {more}\n    "
    return f"{text}\n\n{more}"


def add_pages(names, module):
    """Adds PyTorch's page to the docstring of each public function among `names`, a
    dict, of a module of PyTorch's."""
    for name, function in names.items():
        own = getattr(function, "__doc__", None)
        code = getattr(function, "__code__", None)
        if name[0] == "_" or code is None or own is None or "docs.pytorch.org" in own:
            continue
        function.__doc__ = _with(own, _PAGE.format(f"{module}.{name}"))


def complete(functions):
    """Adds both to the docstrings of `functions`, a dict by public name."""
    with open(_EXAMPLES, encoding="utf-8") as file:
        examples = dict(
            part.split("\n", 1) for part in file.read().strip().split("\n\n")
        )
    for name, function in functions.items():
        # An alias is documented under its first name.
        own = getattr(function, "__doc__", None)
        if own is None or name[0] == "_" or "\n>>> " in own:
            continue
        example = examples.get(name)
        if example is not None:
            own = _with(own, example)
        if name not in _WITHOUT_PAGE and name[-1] != "_":
            own = _with(own, _PAGE.format(f"torch.{name}"))
        try:
            function.__doc__ = own
        except (AttributeError, TypeError):
            continue  # C's
