# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Nested tuples, lists and dicts as flat lists and back, by PyTorch's names."""

from collections import OrderedDict


class TreeSpec:
    """The shape of a nest: what `tree_unflatten` needs besides the leaves."""

    __slots__ = ("type", "keys", "children", "num_leaves")

    def __init__(self, type, keys, children):
        self.type, self.keys, self.children = type, keys, children
        # No type: a leaf.
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in children)

    def _parts(self):
        return self.type, self.keys, self.children

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and self._parts() == other._parts()

    def __repr__(self):
        if self.type is None:
            return "*"
        inside = ", ".join(map(repr, self.children))
        return f"{self.type.__name__}({inside})"


def tree_flatten(tree):
    """(the leaves in order, the TreeSpec) of nested tuples, lists and dicts."""
    leaves = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree, leaves):
    kind, keys = type(tree), None
    if kind in (dict, OrderedDict):
        keys, children = list(tree), list(tree.values())
    elif kind in (tuple, list) or (isinstance(tree, tuple) and hasattr(kind, "_make")):
        children = list(tree)
    else:
        leaves.append(tree)
        return TreeSpec(None, None, [])
    return TreeSpec(kind, keys, [_flatten(c, leaves) for c in children])


def tree_unflatten(leaves, spec):
    """The nest that `spec` describes, with these leaves."""
    leaves = list(leaves)
    if len(leaves) != spec.num_leaves:
        raise ValueError(
            f"tree_unflatten: the spec has {spec.num_leaves} leaves. Got {len(leaves)}."
        )
    return _unflatten(iter(leaves), spec)


def _unflatten(leaves, spec):
    if spec.type is None:
        return next(leaves)
    children = [_unflatten(leaves, c) for c in spec.children]
    if spec.keys is not None:
        return spec.type(zip(spec.keys, children))
    make = getattr(spec.type, "_make", spec.type)
    return make(children)


def tree_map(function, tree):
    """The nest with function(leaf) for every leaf."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([function(leaf) for leaf in leaves], spec)


def tree_leaves(tree):
    """The leaves in order."""
    return tree_flatten(tree)[0]
