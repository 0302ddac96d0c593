# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Which types are nodes of a pytree: how each is taken apart and put together, and the
keys of its children."""

from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple


class NodeDef(NamedTuple):
    """`flatten(node)` gives (children, context), `unflatten(children, context)` the
    node, `flatten_with_keys` children as (key, child)."""

    type: type
    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Callable | None = None
    serialized_type_name: str | None = None


@dataclass(frozen=True)
class SequenceKey:
    """Of an item of a list or tuple."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """Of an item of a dict."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """Of an attribute."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


def _indexed(children):
    return [(SequenceKey(i), child) for i, child in enumerate(children)]


def _mapped(mapping):
    return [(MappingKey(key), child) for key, child in mapping.items()]


def _sequence(kind):
    return NodeDef(
        kind,
        lambda node: (list(node), None),
        lambda children, _: kind(children),
        lambda node: (_indexed(node), None),
    )


def _mapping(kind):
    return NodeDef(
        kind,
        lambda node: (list(node.values()), list(node)),
        lambda children, keys: kind(zip(keys, children)),
        lambda node: (_mapped(node), list(node)),
    )


_NAMED_TUPLE = NodeDef(
    tuple,
    lambda node: (list(node), type(node)),
    lambda children, kind: kind._make(children),
    lambda node: (
        [(GetAttrKey(name), getattr(node, name)) for name in node._fields],
        type(node),
    ),
)
_DEFAULT_DICT = NodeDef(
    defaultdict,
    lambda node: (list(node.values()), [node.default_factory, list(node)]),
    lambda children, context: defaultdict(context[0], zip(context[1], children)),
    lambda node: (_mapped(node), [node.default_factory, list(node)]),
)
_DEQUE = NodeDef(
    deque,
    lambda node: (list(node), node.maxlen),
    lambda children, maxlen: deque(children, maxlen),
    lambda node: (_indexed(node), node.maxlen),
)
SUPPORTED_NODES = {
    tuple: _sequence(tuple),
    list: _sequence(list),
    dict: _mapping(dict),
    OrderedDict: _mapping(OrderedDict),
    defaultdict: _DEFAULT_DICT,
    deque: _DEQUE,
}


def node_of(tree):
    """The NodeDef of a value; None: it is a leaf."""
    kind = type(tree)
    found = SUPPORTED_NODES.get(kind)
    if found is None and is_namedtuple_class(kind):
        return _NAMED_TUPLE
    return found


def shown_type(kind):
    """How a TreeSpec calls the type of a node."""
    return "namedtuple" if is_namedtuple_class(kind) else kind.__name__


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Makes values of `cls` nodes: `flatten_fn(value)` gives (children, context),
    `unflatten_fn(children, context)` a value again, `flatten_with_keys_fn(value)`
    ((key, child) pairs, context). ValueError if `cls` is a node already."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            "Both to_dumpable_context and from_dumpable_context for "
            f"{cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(
        cls, flatten_fn, unflatten_fn, flatten_with_keys_fn, serialized_type_name
    )


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls):
    """Values of `cls` are leaves again."""
    SUPPORTED_NODES.pop(cls)


def register_dataclass(cls, *, field_names=None, drop_field_names=None):
    """Makes values of a dataclass nodes, their fields children."""
    names = list(field_names or cls.__dataclass_fields__)
    names = [name for name in names if name not in (drop_field_names or ())]

    def flatten(value):
        return [getattr(value, name) for name in names], names

    def flatten_with_keys(value):
        return [(GetAttrKey(name), getattr(value, name)) for name in names], names

    register_pytree_node(
        cls,
        flatten,
        lambda children, context: cls(**dict(zip(context, children))),
        flatten_with_keys_fn=flatten_with_keys,
    )


def register_constant(cls):
    """Makes values of `cls` nodes without children: they are part of the TreeSpec."""
    if cls.__eq__ is object.__eq__ or cls.__hash__ in (None, object.__hash__):
        raise TypeError(
            f"register_constant(cls) expects `cls` to have __eq__ and __hash__ of its "
            f"own. Got {cls.__name__}."
        )
    register_pytree_node(
        cls,
        lambda value: ([], value),
        lambda _, value: value,
        flatten_with_keys_fn=lambda value: ([], value),
    )


def is_namedtuple_class(cls):
    """Whether collections.namedtuple or typing.NamedTuple made the class."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(type(name) is str for name in fields)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple_instance(obj):
    """Whether it is a value of such a class."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether it is such a class or a value of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls):
    """Whether it is like time.struct_time: a tuple with names, made in C."""
    sizes = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, name, None), int) for name in sizes)
    )


def is_structseq_instance(obj):
    """Whether it is a value of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj):
    """Whether it is such a class or a value of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def keystr(keys):
    """A path of keys as Python writes it: "['a'][0].x"."""
    return "".join(map(str, keys))


def key_get(obj, keys):
    """What a path of keys leads to."""
    for key in keys:
        obj = key.get(obj)
    return obj
