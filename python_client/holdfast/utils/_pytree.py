# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Nested tuples, lists, dicts and registered types as flat lists and back, by PyTorch's
names."""

from collections import defaultdict
from typing import Any

from holdfast.missing import module_getattr

from .pytree_nodes import node_of, shown_type
from .pytree_nodes import (  # noqa: F401
    SUPPORTED_NODES as SUPPORTED_NODES,
    GetAttrKey as GetAttrKey,
    MappingKey as MappingKey,
    NodeDef as NodeDef,
    SequenceKey as SequenceKey,
    _deregister_pytree_node as _deregister_pytree_node,
    _register_pytree_node as _register_pytree_node,
    is_namedtuple as is_namedtuple,
    is_namedtuple_class as is_namedtuple_class,
    is_namedtuple_instance as is_namedtuple_instance,
    is_structseq as is_structseq,
    is_structseq_class as is_structseq_class,
    is_structseq_instance as is_structseq_instance,
    key_get as key_get,
    keystr as keystr,
    register_constant as register_constant,
    register_dataclass as register_dataclass,
    register_pytree_node as register_pytree_node,
)

PyTree = Context = DumpableContext = Any


class TreeSpec:
    """The shape of a nest: what `tree_unflatten` needs besides the leaves.

    `type` and `context` are the top node's (None: the nest is a leaf); `num_nodes`,
    `num_leaves` and `num_children` count.
    """

    __slots__ = ("type", "context", "_node", "_children", "num_leaves", "num_nodes")

    def __init__(self, type, context, children, node=None):
        self.type, self.context, self._children = type, context, list(children)
        self._node = node if node is not None else SUPPORTED_NODES.get(type)
        # No type: a leaf.
        self.num_leaves = (
            1 if type is None else sum(c.num_leaves for c in self._children)
        )
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)

    @property
    def num_children(self):
        return len(self._children)

    def children(self):
        """The TreeSpecs of the top node's children."""
        return list(self._children)

    def child(self, index):
        """One of children()."""
        return self._children[index]

    def is_leaf(self):
        """Whether the nest is a leaf."""
        return self.type is None

    def _keys(self):
        """Of a dict."""
        return self.context[1] if self.type is defaultdict else self.context

    def unflatten(self, leaves):
        """tree_unflatten(leaves, self)"""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree):
        """What `tree` has in the places of this one's leaves: ValueError unless it has
        the same nodes above."""
        found = []
        _flatten_up_to(self, tree, found)
        return found

    def _parts(self):
        return self.type, self.context, self._children

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and self._parts() == other._parts()

    def __hash__(self):
        return hash((self.type, repr(self.context), tuple(self._children)))

    def __repr__(self):
        if self.type is None:
            return "*"
        lines = ",\n".join(map(repr, self._children)).replace("\n", "\n  ")
        return f"TreeSpec({shown_type(self.type)}, {self.context!r}, [{lines}])"

    def __reduce__(self):
        return TreeSpec, (*self._parts(), self._node)


PyTreeSpec = TreeSpec


def LeafSpec():
    """The TreeSpec of a leaf."""
    return TreeSpec(None, None, [])


treespec_leaf = LeafSpec


def tree_is_leaf(tree, is_leaf=None):
    """Whether the value is no node; `is_leaf(value)` true makes any value one."""
    return node_of(tree) is None or (is_leaf is not None and bool(is_leaf(tree)))


def tree_flatten(tree, is_leaf=None):
    """(the leaves in order, the TreeSpec) of a nest; see tree_is_leaf()."""
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree, leaves, is_leaf):
    node = node_of(tree)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return TreeSpec(None, None, [])
    children, context = node.flatten_fn(tree)
    specs = [_flatten(child, leaves, is_leaf) for child in children]
    return TreeSpec(type(tree), context, specs, node)


def tree_unflatten(leaves, treespec):
    """The nest that `treespec` describes, with these leaves. ValueError unless there
    are as many."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the "
            f"spec refers to a pytree that holds {treespec.num_leaves} items "
            f"({treespec})."
        )
    return _unflatten(iter(leaves), treespec)


def _unflatten(leaves, spec):
    if spec.type is None:
        return next(leaves)
    children = [_unflatten(leaves, child) for child in spec._children]
    return spec._node.unflatten_fn(children, spec.context)


def _flatten_up_to(spec, tree, found):
    if spec.type is None:
        found.append(tree)
        return
    if type(tree) is not spec.type:
        raise ValueError(
            f"Type mismatch; expected {spec.type!r}, but got {type(tree)!r}."
        )
    children, context = spec._node.flatten_fn(tree)
    if len(children) != spec.num_children:
        raise ValueError(
            f"Node arity mismatch; expected {spec.num_children}, but got "
            f"{len(children)}."
        )
    if isinstance(tree, dict):  # of one set of keys, in whatever order
        if set(tree) != set(spec._keys()):
            raise ValueError(
                f"Node keys mismatch; expected {spec._keys()}, but got "
                f"{list(tree)}."
            )
        children = [tree[key] for key in spec._keys()]
    elif context != spec.context:
        raise ValueError(
            f"Node context mismatch for custom node type {spec.type!r}; expected "
            f"{spec.context}, but got {context}."
        )
    for child, below in zip(spec._children, children):
        _flatten_up_to(child, below, found)


def tree_leaves(tree, is_leaf=None):
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree, is_leaf=None):
    """An iterator over the leaves."""
    yield from tree_leaves(tree, is_leaf)


def arg_tree_leaves(*args, **kwargs):
    """The leaves of all arguments."""
    return tree_leaves((args, kwargs))


def tree_structure(tree, is_leaf=None):
    """The TreeSpec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The nest with func(leaf, what each of `rests` has in its place) for every leaf.
    ValueError unless `rests` have the nodes of `tree`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    rest = [spec.flatten_up_to(other) for other in rests]
    return tree_unflatten(map(func, leaves, *rest), spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func as tree_map() does, and returns `tree`."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred, /):
    """A decorator: func for leaves of the types (or for which the function says so),
    other leaves as they are."""
    chosen = type_or_types_or_pred
    if isinstance(chosen, type) or not callable(chosen):
        kinds = chosen

        def chosen(leaf):
            return isinstance(leaf, kinds)

    def decorate(func):
        return lambda leaf: func(leaf) if chosen(leaf) else leaf

    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map() over leaves of some types; see map_only()."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map_() over leaves of some types; see map_only()."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether pred(leaf) holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether pred(leaf) holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether pred(leaf) holds for all leaves of the types."""
    leaves = tree_iter(tree, is_leaf)
    return all(pred(leaf) for leaf in leaves if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether pred(leaf) holds for a leaf of the types."""
    leaves = tree_iter(tree, is_leaf)
    return any(pred(leaf) for leaf in leaves if isinstance(leaf, type_or_types))


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path of keys, leaf), ...]"""
    return list(_with_paths((), tree, is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """(tree_leaves_with_path(tree), the TreeSpec)"""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def _with_paths(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = node_of(tree)
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass "
            "a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map() whose func gets the path of keys first."""
    paths, spec = tree_flatten_with_path(tree, is_leaf)
    rest = [spec.flatten_up_to(other) for other in rests]
    keys, leaves = zip(*paths) if paths else ((), ())
    return tree_unflatten(map(func, keys, leaves, *rest), spec)


def treespec_pprint(treespec):
    """The TreeSpec as text, a star for a leaf."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


class _Star:
    def __repr__(self):
        return "*"


__getattr__ = module_getattr("torch.utils._pytree")
