# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Generators, and the state of the session's stream."""

import copy
import pickle

import pytest

import holdfast as torch
from holdfast.nn import init

# Every function that takes generator=, as a function of it.
SAMPLERS = {
    "rand": lambda g: torch.rand(5, generator=g),
    "rand float64": lambda g: torch.rand(2, 3, dtype=torch.float64, generator=g),
    "randn": lambda g: torch.randn(5, generator=g),
    "randint": lambda g: torch.randint(0, 1000, (5,), generator=g),
    "randint two": lambda g: torch.randint(1000, (5,), generator=g),
    "randperm": lambda g: torch.randperm(50, generator=g),
    "normal": lambda g: torch.normal(0.0, 1.0, (5,), generator=g),
    "normal tensors": lambda g: torch.normal(torch.zeros(5), 1.0, generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.full((40,), 0.5), generator=g),
    "bernoulli p": lambda g: torch.bernoulli(torch.empty(40), 0.5, generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(50), 9, generator=g),
    "multinomial again": lambda g: torch.ones(50).multinomial(9, True, generator=g),
    "poisson": lambda g: torch.poisson(torch.full((9,), 50.0), generator=g),
    "poisson positional": lambda g: torch.poisson(torch.full((9,), 50.0), g),
    "uniform_": lambda g: torch.empty(5).uniform_(generator=g),
    "uniform_ from": lambda g: torch.empty(5).uniform_(0, to=2, generator=g),
    "normal_": lambda g: torch.empty(5).normal_(1, 2, generator=g),
    "bernoulli_": lambda g: torch.empty(40).bernoulli_(0.5, generator=g),
    "random_": lambda g: torch.empty(5).random_(generator=g),
    "random_ to": lambda g: torch.empty(5, dtype=torch.int64).random_(99, generator=g),
    "exponential_": lambda g: torch.empty(5).exponential_(generator=g),
    "geometric_": lambda g: torch.empty(20).geometric_(0.1, generator=g),
    "cauchy_": lambda g: torch.empty(5).cauchy_(generator=g),
    "log_normal_": lambda g: torch.empty(5).log_normal_(generator=g),
    "init.uniform_": lambda g: init.uniform_(torch.empty(3, 4), generator=g),
    "init.normal_": lambda g: init.normal_(torch.empty(3, 4), generator=g),
    "init.trunc_normal_": lambda g: init.trunc_normal_(torch.empty(3, 4), generator=g),
    "init.xavier": lambda g: init.xavier_uniform_(torch.empty(3, 4), generator=g),
    "init.kaiming": lambda g: init.kaiming_normal_(torch.empty(3, 4), generator=g),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    """Same seed, same numbers; the session's stream stays where it is, and the
    generator's numbers are those that the session would draw from its seed."""
    sample = SAMPLERS[name]
    generator = torch.Generator()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = sample(generator.manual_seed(5))
    second = sample(generator)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(sample(torch.Generator().manual_seed(5)), first)
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(sample(None), first)
    assert torch.equal(sample(torch.default_generator), second)


@pytest.mark.parametrize("name", SAMPLERS)
def test_states_are_exact(name):
    sample = SAMPLERS[name]
    for generator in (torch.Generator(), torch.default_generator):
        sample(generator)
        state = generator.get_state()
        assert state.dtype is torch.uint8 and tuple(state.shape) == (16,)
        later = [sample(generator) for _ in range(3)]
        generator.set_state(state)
        for expected in later:
            assert torch.equal(sample(generator), expected)


def test_state_after_an_op_that_fails():
    """The daemon knows best how far its stream is."""
    torch.manual_seed(4)
    failed = torch.bernoulli(torch.full((7,), 2.0))
    follower = torch.bernoulli(failed)
    state = torch.get_rng_state()
    later = torch.rand(5)
    for tensor in (failed, follower):
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            tensor.tolist()
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(5), later)


def test_sizes_that_depend_on_data():
    x = torch.arange(10) > 3
    generator = torch.Generator().manual_seed(2)
    state = generator.get_state()
    torch.bernoulli(torch.full((10,), 0.5)[x], generator=generator)
    torch.rand(4, generator=generator)
    moved = generator.get_state()
    generator.set_state(state)
    torch.bernoulli(torch.full((6,), 0.5), generator=generator)
    torch.rand(4, generator=generator)
    assert torch.equal(generator.get_state(), moved)


def test_seeds():
    generator = torch.Generator()
    assert generator.initial_seed() == 67280421310721
    assert generator.manual_seed(-1).initial_seed() == 2**64 - 1
    assert generator.seed() == generator.initial_seed()
    assert generator.device == torch.device("cpu")
    torch.rand(3, generator=generator)
    again = torch.Generator().manual_seed(generator.initial_seed())
    generator.set_state(again.get_state())
    assert torch.equal(
        torch.rand(3, generator=generator), torch.rand(3, generator=again)
    )
    assert torch.manual_seed(3) is torch.default_generator
    torch.rand(4)
    assert torch.initial_seed() == 3 == torch.random.initial_seed()
    assert torch.seed() == torch.initial_seed()
    for wrong in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="64 bits"):
            generator.manual_seed(wrong)
        with pytest.raises(ValueError, match="64 bits"):
            torch.manual_seed(wrong)


def test_fork_rng():
    torch.manual_seed(8)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        torch.rand(5)
    first = torch.rand(3)
    torch.manual_seed(8)
    assert torch.equal(torch.rand(3), first)
    torch.manual_seed(8)
    with pytest.raises(KeyError), torch.random.fork_rng():
        torch.rand(5)
        raise KeyError
    assert torch.equal(torch.rand(3), first)
    torch.manual_seed(8)
    with torch.random.fork_rng(enabled=False):
        torch.rand(5)
    assert not torch.equal(torch.rand(3), first)


def test_cuda_names():
    state = torch.cuda.get_rng_state()
    first = torch.rand(3)
    torch.cuda.set_rng_state_all([state])
    assert torch.equal(torch.rand(3), first)


def test_copies():
    generator = torch.Generator().manual_seed(6)
    torch.rand(3, generator=generator)
    twins = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    expected = torch.rand(3, generator=generator)
    for twin in twins:
        assert torch.equal(torch.rand(3, generator=twin), expected)
    assert copy.deepcopy(torch.default_generator) is torch.default_generator


def test_wrong_arguments():
    generator = torch.Generator()
    for wrong in (5, "x", torch.rand(3)):
        with pytest.raises(TypeError, match="must be a holdfast.Generator, not"):
            torch.rand(3, generator=wrong)
        with pytest.raises(TypeError, match="must be a holdfast.Generator, not"):
            torch.empty(3).uniform_(generator=wrong)
    with pytest.raises(TypeError, match="uint8 tensor. Got holdfast.float32"):
        generator.set_state(torch.rand(16))
    with pytest.raises(TypeError, match="uint8 tensor. Got bytes"):
        torch.set_rng_state(b"x" * 16)
    with pytest.raises(RuntimeError, match=r"\[16\]. Got \[3\]"):
        generator.set_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(TypeError, match="generator"):
        torch.zeros(3, generator=generator)
    with pytest.raises(TypeError, match="generator"):
        torch.exp(torch.ones(3), generator=generator)
    with pytest.raises(RuntimeError, match="Invalid device string|device type"):
        torch.Generator(device="nowhere")


def test_a_generator_serves_several_sessions():
    """The same numbers, whatever the session and its transport."""
    one = torch.rand(3, generator=torch.Generator().manual_seed(1))
    session = torch.connect(default=False)
    before = torch.current_session()
    torch.set_default_session(session)
    try:
        other = torch.rand(3, generator=torch.Generator().manual_seed(1)).tolist()
    finally:
        torch.set_default_session(before)
        session.close()
    assert one.tolist() == other
