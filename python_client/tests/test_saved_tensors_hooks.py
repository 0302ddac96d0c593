# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""autograd.graph.saved_tensors_hooks: what ops save, in the program's hands."""

import gc
import threading
import weakref

import pytest

# Per op, the shapes of what PyTorch 1.13 packs (where Holdfast saves the same).
# a and b are 3 x 4 and need gradients, c does not.
PACKED = [
    ("a * b", [(3, 4), (3, 4)]),
    ("a * c", [(3, 4)]),
    ("c * a", [(3, 4)]),
    ("a * a", [(3, 4), (3, 4)]),
    ("a / c", [(3, 4)]),
    ("a / b", [(3, 4), (3, 4)]),
    ("a + b", []),
    ("-a", []),
    ("a.exp()", [(3, 4)]),
    ("a.tanh()", [(3, 4)]),
    ("a.sigmoid()", [(3, 4)]),
    ("a.relu()", [(3, 4)]),
    ("a.sin()", [(3, 4)]),
    ("a.sum()", []),
    ("a.mean()", []),
    ("a.reshape(-1)", []),
    ("a.softmax(1)", [(3, 4)]),
    ("a.log_softmax(1)", [(3, 4)]),
    ("a ** 3", [(3, 4)]),
    ("torch.cat([a, b])", []),
    ("torch.where(c > 0, a, b)", [(3, 4)]),
    ("a @ w.t()", [(3, 4), (4, 5)]),
    ("torch.nn.functional.mse_loss(a, c)", [(3, 4), (3, 4)]),
    ("(a + 0).mul_(b)", [(3, 4), (3, 4)]),
]


class Log:
    def __init__(self, torch):
        self.torch, self.packed, self.unpacked = torch, [], []

    def hooks(self):
        def pack(x):
            assert not self.torch.is_grad_enabled()
            self.packed.append(x)
            return x

        def unpack(x):
            self.unpacked.append(x)
            return x

        return self.torch.autograd.graph.saved_tensors_hooks(pack, unpack)


@pytest.fixture
def log(torch):
    return Log(torch)


@pytest.mark.parametrize("code, shapes", PACKED)
def test_what_ops_pack(torch, log, code, shapes):
    torch.manual_seed(0)
    a, b = (torch.randn(3, 4, requires_grad=True) for _ in range(2))
    w = torch.randn(5, 4, requires_grad=True)
    names = {"torch": torch, "a": a, "b": b, "c": torch.randn(3, 4), "w": w}
    plain = eval(code, names)
    with log.hooks():
        y = eval(code, names)
    assert [tuple(x.shape) for x in log.packed] == shapes and not log.unpacked
    weight = torch.randn(y.shape)
    leaves = [x for x in (a, b, w) if x.shape != a.shape or x is a or "b" in code]
    expected = torch.autograd.grad(plain, leaves, weight, allow_unused=True)
    got = torch.autograd.grad(y, leaves, weight, allow_unused=True)
    for one, other in zip(got, expected):
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other)
    assert len(log.unpacked) == len(shapes)


def test_hooks_see_the_programs_own_objects(torch, log):
    layer = torch.nn.Linear(4, 2)
    x = torch.randn(3, 4, requires_grad=True)
    with log.hooks():
        y = layer(x)
        z = x * layer.weight[0]
        w = torch.stack([x, x]) ** 2
    packed = log.packed
    assert any(t is x for t in packed)
    assert any(isinstance(t, torch.nn.Parameter) for t in packed)
    assert all(t.requires_grad for t in packed)
    (y.sum() + z.sum() + w.sum()).backward()
    assert layer.weight.grad is not None and x.grad.shape == (3, 4)


def test_a_network_trains_as_without(torch, log):
    def train(context):
        torch.manual_seed(1)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(inplace=True),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(36, 8),
            torch.nn.LayerNorm(8),
            torch.nn.GELU(),
            torch.nn.Linear(8, 3),
        )
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        data, target = torch.randn(6, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1, 2])
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            with context():
                loss = torch.nn.functional.cross_entropy(net(data), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    import contextlib

    assert train(log.hooks) == train(contextlib.nullcontext)
    assert len(log.packed) == len(log.unpacked) > 60


def test_quantised_tensors_give_the_gradients_of_what_is_unpacked(torch):
    def pack(x):
        scale = x.abs().max() / 127
        return (x / scale).round().to(torch.int8), scale

    def unpack(packed):
        values, scale = packed
        return values.float() * scale

    x = torch.tensor([1.0, -0.33, 0.5], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x**2
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2.0, -0.66, 1.0], abs=0.01)
    assert x.grad.tolist() != [2.0, -0.66, 1.0]
    # Another dtype is converted.
    with torch.autograd.graph.saved_tensors_hooks(torch.Tensor.half, lambda x: x):
        y = x.detach().requires_grad_() * x
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.dtype is torch.float32 and g[1].item() == torch.tensor(-0.33).half().item()


def test_tensors_on_disk(torch, tmp_path):
    names = []

    def pack(x):
        if x.numel() < 10:
            return x
        names.append(tmp_path / f"{len(names)}.pt")
        torch.save(x, names[-1])
        return names[-1]

    def unpack(x):
        return x if isinstance(x, torch.Tensor) else torch.load(x)

    x = torch.randn(5, 5, requires_grad=True)
    s = torch.tensor(2.0, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x * s).sum()
    assert len(names) == 3
    y.backward()
    assert torch.allclose(x.grad, (4 * x).detach())
    assert torch.allclose(s.grad, (x * x).sum().detach())


def test_the_innermost_hooks_count(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    calls = []

    def named(name):
        return hooks(lambda x: calls.append(name) or x, lambda x: x)

    x = torch.ones(2, requires_grad=True)
    with named("outer"):
        x.exp()
        with named("inner"):
            x.exp()
        x.exp()
        with torch.no_grad():
            x.exp()
    x.exp()
    assert calls == ["outer", "inner", "outer"]


def test_hooks_are_of_one_thread(torch, log):
    x = torch.ones(2, requires_grad=True)
    with log.hooks():
        thread = threading.Thread(target=lambda: x.exp().sum().backward())
        thread.start()
        thread.join()
    assert not log.packed and x.grad is not None


def test_what_hooks_may_not_do(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    x = torch.ones(2, requires_grad=True)

    def backward(pack, unpack):
        with hooks(pack, unpack):
            y = x.exp()
        y.sum().backward()

    with pytest.raises(RuntimeError, match="modifying its input in place"):
        backward(lambda t: t.add_(1), lambda t: t)
    with pytest.raises(TypeError, match="but got result of type int"):
        backward(lambda t: 1, lambda t: t)
    with pytest.raises(TypeError, match="positional argument"):
        backward(lambda: 1, lambda t: t)
    with pytest.raises(ZeroDivisionError):
        backward(lambda t: t, lambda t: 1 / 0)
    with pytest.raises(RuntimeError, match=r"f32\[1\] for f32\[2\]"):
        backward(lambda t: t, lambda t: t[:1])
        x.grad.tolist()
    x.grad = None
    x.exp().sum().backward()  # nothing is left over
    assert x.grad is not None


def test_hooks_can_be_refused(torch, log):
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with log.hooks():
                pass
    with log.hooks(), pytest.raises(RuntimeError, match="nor here"):
        with graph.disable_saved_tensors_hooks("nor here"):
            pass
    with log.hooks():
        torch.ones(1, requires_grad=True).exp()
    assert len(log.packed) == 1


def test_a_graph_is_unpacked_as_often_as_it_is_used(torch, log):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with log.hooks():
        y = (x.exp() * x).sum()
    packed = len(log.packed)
    y.backward(retain_graph=True)
    y.backward()
    assert len(log.unpacked) == 2 * packed
    assert torch.allclose(x.grad, 2 * (x.exp() * (1 + x)).detach())
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
        x.grad.tolist()


def test_gradients_of_gradients(torch, log):
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    with log.hooks():
        y = (x.exp() * x.sin() * x).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    z = (x.exp() * x.sin() * x).sum()
    (first,) = torch.autograd.grad(z, x, create_graph=True)
    assert torch.allclose(second, torch.autograd.grad(first.sum(), x)[0])

    def f(x, w):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda t: t[0]):
            return torch.tanh(x @ w).exp()

    w = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (x, w))
    assert torch.autograd.gradgradcheck(f, (x, w))


def test_functions_save_through_hooks(torch, log):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y, None)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y, nothing = ctx.saved_tensors
            assert nothing is None
            return g * y

    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    with log.hooks():
        y = Exp.apply(x)
    assert len(log.packed) == 2 and log.packed[0] is x
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(second, x.exp().detach())


def test_a_checkpoint_inside_packs_its_inputs(torch, log):
    from holdfast.utils.checkpoint import checkpoint

    x = torch.randn(3, requires_grad=True)
    with log.hooks():
        y = checkpoint(lambda x: x.exp().sin().exp(), x, use_reentrant=True)
    assert len(log.packed) == 1
    y.sum().backward()
    expected = torch.autograd.grad(x.exp().sin().exp().sum(), x)[0]
    assert torch.allclose(x.grad, expected)


def test_in_place_ops_pack_what_they_overwrite(torch, log):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with log.hooks():
        y = x * 1
        y.mul_(y)
        y.exp_()
    y.sum().backward()
    assert torch.allclose(x.grad, (2 * x * (x * x).exp()).detach())
    # Hooks keep what they like, so that nobody can tell of changes.
    a = torch.tensor([1.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
        b = a * 3
        c = b**2
        b.zero_()
    c.backward()
    assert a.grad.tolist() == [18.0]
    c = (b := a * 3) ** 2
    b.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        c.backward()
        a.grad.tolist()


def test_packed_objects_die_with_the_graph(torch):
    class Kept:
        def __init__(self, tensor):
            self.tensor = tensor

    alive = weakref.WeakSet()

    def pack(x):
        kept = Kept(x.detach())
        alive.add(kept)
        return kept

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
        y, z = (x.exp() * x).sum(), x.exp()
    assert len(alive) == 4
    y.backward()
    gc.collect()
    assert len(alive) == 1
    del z
    x.sum().item()
    gc.collect()
    assert not alive


def test_identity_hooks_leak_nothing(torch, log):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.exp()
    node = weakref.ref(y)
    before = torch.cuda.memory_allocated()
    del y
    gc.collect()
    assert node() is None and torch.cuda.memory_allocated() < before


def test_save_on_cpu_changes_no_gradient(torch, log):
    x = torch.arange(4.0, requires_grad=True)
    with log.hooks(), torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x.exp() * x).sum()
    y.backward()
    assert torch.allclose(x.grad, (x.exp() * (1 + x)).detach())
    assert not log.packed

    @torch.autograd.graph.save_on_cpu()
    def f(x):
        return x.exp()

    assert f(x).requires_grad
