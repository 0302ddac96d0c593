# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""utils._pytree. What is asserted is what PyTorch 2.15 gives for the same lines."""

import dataclasses
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from holdfast.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREE = {"a": [1, (2, None)], "b": OrderedDict(x=3)}


def test_flat_and_back():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, None, 3]
    assert pytree.tree_unflatten(leaves, spec) == TREE
    assert pytree.tree_leaves(TREE) == list(pytree.tree_iter(TREE)) == leaves
    assert (spec.num_nodes, spec.num_leaves, spec.num_children) == (8, 4, 2)
    assert spec.type is dict and spec.context == ["a", "b"] and not spec.is_leaf()
    assert repr(pytree.tree_structure(TREE["a"])) == (
        "TreeSpec(list, None, [*,\n  TreeSpec(tuple, None, [*,\n    *])])"
    )
    assert spec == pytree.tree_structure({"a": [5, (6, 7)], "b": OrderedDict(x=8)})
    assert spec != pytree.tree_structure({"a": [5, 6], "b": OrderedDict(x=8)})
    assert len({spec, pytree.tree_structure(TREE)}) == 1
    with pytest.raises(ValueError, match="has length 1 but the spec .* 4 items"):
        pytree.tree_unflatten([1], spec)


def test_what_is_a_node():
    for value in (
        Point(1, [2]),
        deque([1, 2], maxlen=3),
        defaultdict(list, a=1),
        OrderedDict(b=1, a=2),
        (),
        {},
    ):
        leaves, spec = pytree.tree_flatten(value)
        again = pytree.tree_unflatten(leaves, spec)
        assert again == value and type(again) is type(value)
    again = pytree.tree_map(lambda x: x, deque([1], maxlen=3))
    assert again.maxlen == 3
    assert pytree.tree_map(str, defaultdict(list, a=1)).default_factory is list
    assert pytree.tree_leaves({"b": 1, "a": 2}) == [1, 2]  # in the dict's order
    for leaf in (None, "text", {1, 2}, time.gmtime(0)):
        assert pytree.tree_is_leaf(leaf) and pytree.tree_leaves(leaf) == [leaf]
    short = [1, [2, 3]]
    assert pytree.tree_leaves(short, is_leaf=lambda x: x == [2, 3]) == [1, [2, 3]]
    assert pytree.is_namedtuple(Point) and pytree.is_namedtuple_instance(Point(1, 2))
    assert not pytree.is_namedtuple((1, 2))
    assert pytree.is_structseq_instance(time.gmtime(0))


def test_several_trees():
    assert pytree.tree_map(lambda a, b: a + b, [1, (2,)], [3, (4,)]) == [4, (6,)]
    assert pytree.tree_map(lambda a, b: b, [1], [{"x": 2}]) == [{"x": 2}]
    assert pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": 2}, {"b": 3, "a": 4}) == {
        "a": 5,
        "b": 5,
    }
    with pytest.raises(ValueError, match="arity mismatch; expected 2, but got 3"):
        pytree.tree_map(lambda a, b: a, [1, 2], [3, 4, 5])
    with pytest.raises(ValueError, match="Type mismatch; expected"):
        pytree.tree_map(lambda a, b: a, [1], (2,))
    with pytest.raises(ValueError, match="keys mismatch"):
        pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})
    spec = pytree.tree_structure([1, [2]])
    assert spec.flatten_up_to([5, [6]]) == [5, 6]
    assert spec.unflatten("ab") == ["a", ["b"]]


def test_some_leaves():
    tree = [1, "a", 2.0, True]
    assert pytree.tree_map_only(int, lambda x: x + 1, tree) == [2, "a", 2.0, 2]
    assert pytree.tree_map_only((int, str), lambda x: x * 2, [1, "a"]) == [2, "aa"]
    assert pytree.tree_map_only(lambda x: x == "a", str.upper, ["a", "b"]) == ["A", "b"]
    seen = []
    assert pytree.tree_map_(seen.append, tree) is tree and seen == tree
    assert pytree.tree_map_only_(str, seen.append, tree) is tree and seen[-1] == "a"
    assert pytree.tree_any(lambda x: x == 2, [1, [2]])
    assert not pytree.tree_all(lambda x: x == 2, [1, [2]])
    assert pytree.tree_all_only(int, lambda x: x > 1, [2, "s"])
    assert not pytree.tree_any_only(int, lambda x: x > 2, [2, "s"])


def test_paths():
    paths = pytree.tree_leaves_with_path(TREE)
    assert [pytree.keystr(path) for path, _ in paths] == [
        "['a'][0]",
        "['a'][1][0]",
        "['a'][1][1]",
        "['b']['x']",
    ]
    assert all(pytree.key_get(TREE, path) is leaf for path, leaf in paths)
    (path, leaf), _ = pytree.tree_leaves_with_path(Point(1, 2))
    assert pytree.keystr(path) == ".x" and leaf == 1
    assert pytree.tree_map_with_path(
        lambda path, x, y: (pytree.keystr(path), x + y), [1, [2]], [10, [20]]
    ) == [("[0]", 11), [("[1][0]", 22)]]
    again, spec = pytree.tree_flatten_with_path(TREE)
    assert again == paths and spec == pytree.tree_structure(TREE)


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


def test_registered_types(torch):
    pytree.register_pytree_node(
        Pair,
        lambda pair: ([pair.a, pair.b], None),
        lambda children, context: Pair(*children),
    )
    try:
        doubled = pytree.tree_map(lambda x: x * 2, [Pair(1, torch.ones(2))])
        assert doubled[0].a == 2 and doubled[0].b.tolist() == [2, 2]
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Pair, lambda p: p, lambda c, x: c)
        with pytest.raises(ValueError, match="flatten_with_keys_fn"):
            pytree.tree_leaves_with_path(Pair(1, 2))
        summed = torch.vmap(lambda pair: pair.a + pair.b)(
            Pair(torch.ones(3), torch.arange(3.0))
        )
        assert summed.tolist() == [1, 2, 3]
    finally:
        pytree._deregister_pytree_node(Pair)
    assert len(pytree.tree_leaves(Pair(1, 2))) == 1


def test_dataclasses_and_constants():
    @dataclasses.dataclass
    class Box:
        inside: object
        size: int

    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    pytree.register_dataclass(Box)
    pytree.register_constant(Mode)
    try:
        box = pytree.tree_map(lambda x: x + 1, Box([1], 2))
        assert box == Box([2], 3)
        paths = pytree.tree_leaves_with_path(Box([1], 2))
        assert [pytree.keystr(path) for path, _ in paths] == [".inside[0]", ".size"]
        leaves, spec = pytree.tree_flatten([Mode("a"), 1])
        assert leaves == [1] and spec != pytree.tree_structure([Mode("b"), 1])
        assert spec.unflatten([2]) == [Mode("a"), 2]
    finally:
        pytree._deregister_pytree_node(Box)
        pytree._deregister_pytree_node(Mode)
    with pytest.raises(TypeError, match="__eq__ and __hash__"):
        pytree.register_constant(Pair)
