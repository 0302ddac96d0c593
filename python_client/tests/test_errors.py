# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What is raised, when, and what it says."""

import inspect
import os
import re
import subprocess
import sys
import threading

import pytest

from holdfast import errors


def test_shape_errors_are_raised_at_the_call(torch):
    with pytest.raises(errors.OpError, match=r"\[add\].*f32\[2,3\].*f32\[4\]"):
        torch.ones(2, 3) + torch.ones(4)
    with pytest.raises(RuntimeError, match=r"\[matmul\]"):
        torch.ones(2, 3) @ torch.ones(2, 3)
    with pytest.raises(IndexError, match=r"Dimension out of range.*\[-2, 1\]"):
        torch.ones(2, 3).sum(2)
    with pytest.raises(RuntimeError, match=r"\[view\]"):
        torch.ones(2, 3).view(4)


def test_the_session_goes_on_after_errors(torch):
    x = torch.ones(3)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            x + torch.ones(4)
    assert (x + 1).tolist() == [2.0] * 3


def test_an_execution_error_names_the_line_that_caused_it(torch):
    x = torch.arange(3)
    line = inspect.currentframe().f_lineno + 1
    y = x.index_select(0, torch.tensor([7]))
    z = y * 2
    for bad in (y, z):
        with pytest.raises(errors.OutOfRangeError) as caught:
            bad.tolist()
        assert caught.value.op == "index_select"
        assert caught.value.op_sequence > 0
        assert caught.value.filename == __file__
        assert caught.value.lineno == line
        assert f"submitted at {__file__}:{line}" in str(caught.value)
    assert x.tolist() == [0, 1, 2]


def test_integer_division_by_zero(torch):
    y = torch.tensor([1]) // torch.tensor([0])
    with pytest.raises(RuntimeError, match="floor_divide"):
        y.item()


def test_tensors_of_two_sessions_do_not_mix(torch, daemon, transport):
    with torch.connect(daemon.address(transport), default=False) as other:
        x = torch.ones(2)
        before = torch.current_session()
        torch.set_default_session(other)
        try:
            y = torch.ones(2)
        finally:
            torch.set_default_session(before)
        with pytest.raises(RuntimeError, match="session"):
            x + y
        assert (y + 1).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="closed"):
        y + 1
    assert (x + 1).tolist() == [2.0, 2.0]


def test_classes_subclass_what_pytorch_raises():
    assert issubclass(errors.OpError, RuntimeError)
    assert issubclass(errors.OutOfRangeError, IndexError)
    assert issubclass(errors.OutOfMemoryError, RuntimeError)
    assert issubclass(errors.DaemonUnavailableError, ConnectionError)
    assert issubclass(errors.UnsupportedError, NotImplementedError)
    for name, value in vars(errors).items():
        if isinstance(value, type):
            assert issubclass(value, errors.HoldfastError), name


def test_wrong_address_is_a_clear_error(torch):
    for address in ("127.0.0.1:1", "unix:/nonexistent/socket"):
        with pytest.raises(ConnectionError, match=address.split(":")[1]):
            torch.connect(address, default=False, timeout=2)


def test_threads_share_a_session(torch):
    results = {}

    def work(n):
        x = torch.full((100,), float(n))
        for _ in range(200):
            x = x + 1
        results[n] = x.sum().item()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: 100.0 * (n + 200) for n in range(6)}


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_out_of_memory_is_one_ops_error(transport):
    import holdfast
    from holdfast.daemon import Daemon

    with Daemon("--memory_limit=50000000") as small:
        with holdfast.connect(small.address(transport), default=False) as session:
            before = holdfast._C.current_session()
            holdfast.set_default_session(session)
            try:
                x = holdfast.ones(1000)
                large = holdfast.zeros(100_000_000)
                with pytest.raises(errors.OutOfMemoryError, match="[Mm]emory|limit"):
                    large.sum().item()
                assert x.sum().item() == 1000.0
                del large
            finally:
                holdfast.set_default_session(before)


def test_source_lines_of_every_op(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "import holdfast as torch\n"
        "torch.connect(sys.argv[1])\n"
        "x = torch.ones(1000)\n"
        "y = x + 1; z = torch.zeros(100_000_000)\n"
        "try:\n"
        "    z.sum().item()\n"
        "except RuntimeError as error:\n"
        "    print(error.lineno, error.filename)\n"
    )
    from holdfast.daemon import Daemon

    with Daemon("--memory_limit=50000000") as small:
        result = subprocess.run(
            [sys.executable, str(program), small.shm_address],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "HOLDFAST_SOURCE_LINES": "1"},
        )
    assert result.stdout.split() == ["5", str(program)], result.stderr


def test_creation_functions_speak_of_themselves(torch):
    x = torch.ones(2)
    negative = "Trying to create tensor with negative dimension -1"
    for name, call in (
        ("zeros", lambda: torch.zeros(-1)),
        ("ones", lambda: torch.ones(2, -1)),
        ("empty", lambda: torch.empty(-1)),
        ("full", lambda: torch.full((-1,), 1)),
        ("rand", lambda: torch.rand(-1)),
        ("randn", lambda: torch.randn(-1)),
        ("randint", lambda: torch.randint(3, (-1,))),
        ("new_zeros", lambda: x.new_zeros(-1)),
        ("new_ones", lambda: x.new_ones(-1)),
        ("new_empty", lambda: x.new_empty(-1)),
        ("new_full", lambda: x.new_full((-1,), 1)),
    ):
        with pytest.raises(RuntimeError, match=rf"^\[{name}\] {negative}") as caught:
            call()
        shown = "fill_value" in str(caught.value)
        assert shown == (name in ("full", "new_full")), str(caught.value)
    with pytest.raises(RuntimeError, match=r"^\[empty_strided\] .*stride=\[-1\]"):
        torch.empty_strided((2,), (-1,))
    with pytest.raises(TypeError, match=r"^zeros\(\): argument 'size' must be tuple"):
        torch.zeros("a")
    with pytest.raises(TypeError, match=r"^ones_like\(\): .* must be Tensor, not int"):
        torch.ones_like(3)


def test_a_wrong_element_of_a_size_is_named(torch):
    for call, found in (
        (lambda: torch.nn.Linear("a", 2), "str at pos 2"),
        (lambda: torch.nn.Linear(2.5, 2), "float at pos 2"),
        (lambda: torch.empty(2, 3, None), "NoneType at pos 3"),
    ):
        message = rf"'size' must be tuple of ints, but found element of type {found}"
        with pytest.raises(TypeError, match=message):
            call()


def test_inverses_speak_of_themselves(torch):
    for inverse in (torch.linalg.inv, torch.inverse, torch.Tensor.inverse):
        with pytest.raises(RuntimeError, match=r"^\[linalg.inv\] .* 3 by 4 matrices"):
            inverse(torch.zeros(3, 4))
        with pytest.raises(
            torch.linalg.LinAlgError, match=r"^linalg\.inv: .*The inver"
        ):
            inverse(torch.zeros(2, 3, 3)).sum().item()
    with pytest.raises(torch.linalg.LinAlgError, match=r"^linalg\.solve: The solver"):
        torch.linalg.solve(torch.zeros(3, 3), torch.ones(3)).sum().item()


def test_attention_names_itself_and_what_does_not_fit(torch):
    attend = torch.nn.functional.scaled_dot_product_attention
    ones = torch.ones
    q, k = ones(2, 8, 4, 16), ones(2, 2, 4, 16)
    for call, reason in (
        (lambda: attend(q, k, k), "8 heads and key 2; enable_gqa=True repeats"),
        (lambda: attend(q, ones(2, 8, 5, 16), q), "one length, but got 5 and 4"),
        (lambda: attend(q, q, q, ones(3, 3)), r"broadcast to \[2, 8, 4, 4\]"),
        (lambda: attend(ones(4), ones(4), ones(4)), "at least 2 dimensions"),
        (lambda: attend(q, ones(3, 8, 4, 16), q), "before the last two must broadc"),
    ):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert re.match(
            rf"\[scaled_dot_product_attention\] .*{reason}.* Got query=float32\[",
            str(caught.value),
        ), str(caught.value)
    assert attend(q, k, k, enable_gqa=True).shape == q.shape


def test_inference_tensors_are_not_saved(torch):
    w = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        a, m = torch.ones(3), torch.ones(3, 3)
        assert (w * a).sum().item() == 3
    for call in (lambda: w * a, lambda: m @ w, lambda: torch.where(a > 0, w, a) * a):
        with pytest.raises(
            RuntimeError, match="Inference tensors cannot be saved for backward"
        ):
            call()
    # What no gradient looks at may be one, and so may a clone.
    (w + a).sum().backward()
    (w * a.clone()).sum().backward()
    assert w.grad.tolist() == [2, 2, 2] and (w.detach() * a).sum().item() == 3


def test_long_lists_are_shortened(torch):
    with pytest.raises(RuntimeError, match=r"\(200000 in all\)\]\.") as caught:
        torch.ones(3).flip([0] * 200_000)
    assert len(str(caught.value)) < 1000
