# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Calls with long lists cost what the lists are long, counted in Python's calls.

Clocks of busy machines tell nothing; a loop in a loop shows in the calls that it
makes, and these here make at least one per step.
"""

import io
import sys

import numpy as np
import pytest


def many(torch, n, shape=(1,)):
    return [torch.ones(shape) for _ in range(n)]


def parameters(torch, n):
    params = [torch.zeros(1, requires_grad=True) for _ in range(n)]
    for p in params:
        p.grad = torch.ones(1)
    return params


def layers(torch, n):
    return torch.nn.ModuleList([torch.nn.Linear(1, 1) for _ in range(n)])


def norms(torch, n):
    return torch.nn.ModuleList([torch.nn.BatchNorm1d(1) for _ in range(n)])


def state_of_old(torch, n):
    """A model and a state from before num_batches_tracked."""
    model = norms(torch, n)
    state = {k: v for k, v in model.state_dict().items() if "batches" not in k}
    return model, state


def saved(torch, n):
    file = io.BytesIO()
    torch.save({str(i): x for i, x in enumerate(many(torch, n))}, file)
    file.seek(0)
    return file


def einsum(arrow):
    return lambda t, xs: t.einsum(",".join(["a"] * len(xs)) + arrow, *xs)


def chain_of_letters(torch, n):
    letters = "abcdefghijklmnopqrstuvwxyz"
    terms = [letters[i % 20] + letters[(i * 7 + 1) % 26] for i in range(n)]
    return ",".join(terms), many(torch, n, (1, 1))


# name: (what is made before, what is counted)
CALLS = {
    "einsum": (many, einsum("")),
    "einsum to a vector": (many, einsum("->a")),
    "einsum of many letters": (
        chain_of_letters,
        lambda t, made: t.einsum(made[0] + "->", *made[1]),
    ),
    "multi_dot": (
        lambda t, n: many(t, n, (1, 1)),
        lambda t, xs: t.linalg.multi_dot(xs),
    ),
    "cat": (many, lambda t, xs: t.cat(xs)),
    "stack": (many, lambda t, xs: t.stack(xs)),
    "vstack": (many, lambda t, xs: t.vstack(xs)),
    "dstack": (many, lambda t, xs: t.dstack(xs)),
    "column_stack": (many, lambda t, xs: t.column_stack(xs)),
    "block_diag": (many, lambda t, xs: t.block_diag(*xs)),
    "broadcast_tensors": (many, lambda t, xs: t.broadcast_tensors(*xs)),
    "broadcast_shapes": (many, lambda t, xs: t.broadcast_shapes(*[(1,) for _ in xs])),
    "atleast_3d": (many, lambda t, xs: t.atleast_3d(xs)),
    "pad_sequence": (many, lambda t, xs: t.nn.utils.rnn.pad_sequence(xs)),
    "pack_sequence": (many, lambda t, xs: t.nn.utils.rnn.pack_sequence(xs)),
    "split": (lambda t, n: t.ones(n), lambda t, x: t.split(x, 1)),
    "tensor_split": (lambda t, n: t.ones(n), lambda t, x: x.tensor_split(len(x))),
    "clip_grad_norm_": (
        parameters,
        lambda t, ps: t.nn.utils.clip_grad_norm_(ps, 1.0),
    ),
    "parameters_to_vector": (
        parameters,
        lambda t, ps: t.nn.utils.parameters_to_vector(ps),
    ),
    "Adam": (parameters, lambda t, ps: t.optim.Adam(ps, lr=0.1).step()),
    "a group for each parameter": (
        parameters,
        lambda t, ps: t.optim.SGD([{"params": [p]} for p in ps], lr=0.1),
    ),
    "autograd.grad": (
        parameters,
        lambda t, ps: t.autograd.grad(t.cat(ps).sum(), ps),
    ),
    "keep": (
        many,
        lambda t, xs: (
            t.keep("long", dict(zip(map(str, range(len(xs))), xs))),
            t.kept("long"),
            t.keep("long", None),
        ),
    ),
    "save": (
        many,
        lambda t, xs: t.save(dict(enumerate(xs)), io.BytesIO()),
    ),
    "load": (saved, lambda t, file: t.load(file)),
    "state_dict": (layers, lambda t, m: m.state_dict()),
    "load_state_dict": (
        layers,
        lambda t, m: m.load_state_dict(m.state_dict()),
    ),
    "load_state_dict of an old state": (
        state_of_old,
        lambda t, made: made[0].load_state_dict(made[1]),
    ),
    "deepcopy": (layers, lambda t, m: __import__("copy").deepcopy(m)),
    "repr": (layers, lambda t, m: repr(m)),
}

# Each tensor of theirs takes many calls.
SLOW = {"save", "load", "deepcopy", "einsum of many letters"}


def calls_of(run):
    count = 0

    def note(frame, event, arg):
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", CALLS)
def test_a_long_list_costs_its_length(torch, name):
    make, run = CALLS[name]
    run(torch, make(torch, 20))  # what the first call imports
    counts = []
    for n in (50, 200) if name in SLOW else (200, 800):
        made = make(torch, n)
        counts.append(calls_of(lambda made=made: run(torch, made)))
    # n log n is 5 times as much, n * n is 16 times.
    assert counts[1] < 6.5 * counts[0] + 100, counts


def test_einsum_of_many_operands_is_right(torch):
    rng = np.random.default_rng(0)
    arrays = [rng.random((3,) * 2) + 0.5 for _ in range(20)]
    letters = "abcdefghijklmnopqrstuv"
    terms = [letters[i] + letters[i + 1] for i in range(20)]
    text = ",".join(terms) + "->" + letters[0] + letters[20]
    got = torch.einsum(text, *map(torch.tensor, arrays)).numpy()
    assert np.allclose(got, np.linalg.multi_dot(arrays))
    vectors = [rng.random(4) + 0.5 for _ in range(40)]
    got = torch.einsum(",".join("a" * 40), *map(torch.tensor, vectors))
    assert np.allclose(got.item(), np.prod(vectors, axis=0).sum())
    mixed = [rng.random((2, 3)) + 0.5 if i % 2 else rng.random(3) for i in range(30)]
    text = ",".join("ba" if i % 2 else "a" for i in range(30)) + "->b"
    want = np.prod([np.broadcast_to(x, (2, 3)) for x in mixed], axis=0).sum(1)
    assert np.allclose(torch.einsum(text, *map(torch.tensor, mixed)).numpy(), want)


def test_a_long_chain_of_matrices_is_right(torch):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 6, 82)
    arrays = [rng.random(s) - 0.5 for s in zip(sizes[:-1], sizes[1:])]
    arrays = [a / np.linalg.norm(a) * 2 for a in arrays]
    got = torch.linalg.multi_dot([*map(torch.tensor, arrays)]).numpy()
    want = arrays[0]
    for a in arrays[1:]:
        want = want @ a
    assert got.shape == want.shape and np.allclose(got, want, rtol=1e-9, atol=0)


def test_unexpected_keys_of_any_module_are_told_in_order(torch):
    model = torch.nn.ModuleList([torch.nn.Linear(1, 1) for _ in range(12)])
    state = dict(model.state_dict())
    wrong = ["z", "11.b", "11.a", "1.weight.x", "12.weight", "1.z"]
    state.update(dict.fromkeys(wrong, torch.ones(1)))
    found = model.load_state_dict(state, strict=False)
    assert found.missing_keys == []
    with pytest.raises(RuntimeError, match="Unexpected key") as caught:
        model.load_state_dict(state)
    places = [str(caught.value).index(f'"{key}"') for key in wrong]
    assert sorted(places) == [
        str(caught.value).index(f'"{key}"')
        for key in ["z", "12.weight", "1.weight.x", "1.z", "11.b", "11.a"]
    ]
