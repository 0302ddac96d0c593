# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""autocast: on the CPU the types and values of PyTorch's; on a GPU (a device without
hardware, server/fake_device) those of PyTorch's lists; GradScaler."""

import math
import threading

import numpy as np
import pytest
from torch_peer import torch as peer

import holdfast

X = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)
W = np.random.default_rng(2).standard_normal((6, 6)).astype(np.float32)


def product(torch, device="cpu"):
    """A matrix product, in 16 bits under autocast."""
    x, w = (torch.tensor(a, device=device) for a in (X, W))
    return x @ w


def of_product(f):
    return lambda torch, device="cpu": f(torch, product(torch, device))


ROWS = {
    "matmul": product,
    "mm": lambda torch, device="cpu": torch.mm(
        *(torch.tensor(a, device=device) for a in (X, W))
    ),
    "einsum": lambda torch, device="cpu": torch.einsum(
        "ij,jk->ik", *(torch.tensor(a, device=device) for a in (X, W))
    ),
    "addmm": lambda torch, device="cpu": torch.addmm(
        *(torch.tensor(a, device=device) for a in (X, X, W))
    ),
    "linear": of_product(lambda torch, y: torch.nn.functional.linear(y, y)),
    "conv1d": of_product(
        lambda torch, y: torch.nn.functional.conv1d(
            y[None].float(), y.float()[:3, :4, None]
        )
    ),
    "softmax": of_product(lambda torch, y: y.softmax(-1)),
    "log_softmax": of_product(lambda torch, y: y.log_softmax(-1)),
    "exp": of_product(lambda torch, y: y.exp()),
    "relu": of_product(lambda torch, y: y.relu()),
    "sum": of_product(lambda torch, y: y.sum()),
    "mean": of_product(lambda torch, y: y.mean()),
    "prod": of_product(lambda torch, y: y.prod()),
    "cumsum": of_product(lambda torch, y: y.cumsum(0)),
    "pow": of_product(lambda torch, y: y**2),
    "norm": of_product(lambda torch, y: y.norm()),
    "layer_norm": of_product(lambda torch, y: torch.nn.functional.layer_norm(y, (6,))),
    "batch_norm": of_product(
        lambda torch, y: torch.nn.functional.batch_norm(
            y, None, None, y[0].float() * 0 + 1, y[0].float() * 0, True
        )
    ),
    "cross_entropy": of_product(
        lambda torch, y: torch.nn.functional.cross_entropy(
            y, torch.tensor([0, 1, 2, 3]).to(y.device)
        )
    ),
    "mse_loss": of_product(lambda torch, y: torch.nn.functional.mse_loss(y, y * 0)),
    "l1_loss": of_product(lambda torch, y: torch.nn.functional.l1_loss(y, y * 0)),
    "bce_with_logits": of_product(
        lambda torch, y: torch.nn.functional.binary_cross_entropy_with_logits(y, y * 0)
    ),
    "cat": of_product(lambda torch, y: torch.cat([y, y.float()])),
    "add": of_product(lambda torch, y: y + y.float()),
    "cdist": of_product(lambda torch, y: torch.cdist(y, y)),
    "float64": of_product(lambda torch, y: y.double() @ y.double().T),
    "integers": of_product(lambda torch, y: y.long() @ y.long().T),
}
# What the lists for GPUs say of the rows; the rest stays as it comes.
ON_GPU = {
    "float32": "softmax log_softmax exp sum prod cumsum pow norm layer_norm "
    "cross_entropy mse_loss l1_loss bce_with_logits cat add cdist".split(),
    "float64": ["float64"],
    "int64": ["integers"],
}


@pytest.mark.parametrize("name", ROWS)
def test_types_and_values_on_the_cpu(torch, name):
    with torch.autocast("cpu"):
        mine = ROWS[name](torch)
    with peer.autocast("cpu"):
        theirs = ROWS[name](peer)
    assert str(mine.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    tolerance = 0 if name == "integers" else 0.04
    np.testing.assert_allclose(
        mine.double().numpy(), theirs.double().numpy(), tolerance, tolerance * 4
    )


def layers(torch):
    torch.manual_seed(0)
    nn = torch.nn
    image, row, steps = torch.ones(2, 3, 8, 8), torch.ones(2, 6), torch.ones(5, 2, 6)
    return {
        "Conv2d": (nn.Conv2d(3, 4, 3), (image,)),
        "ConvTranspose2d": (nn.ConvTranspose2d(3, 4, 3), (image,)),
        "LSTM": (nn.LSTM(6, 4), (steps,)),
        "GRU": (nn.GRU(6, 4), (steps,)),
        "LSTMCell": (nn.LSTMCell(6, 4), (row,)),
        "GRUCell": (nn.GRUCell(6, 4), (row,)),
        "MultiheadAttention": (nn.MultiheadAttention(6, 2), (steps,) * 3),
        "Conv + BatchNorm": (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)),
            (image,),
        ),
        "Linear + GroupNorm": (
            nn.Sequential(nn.Linear(6, 4), nn.GroupNorm(2, 4)),
            (row,),
        ),
    }


def results_of(layer, inputs):
    out = layer(*inputs)
    return out[0] if isinstance(out, tuple) else out


# PyTorch 1.13 refuses a 16-bit input and float32 weights there.
ON_CPU = [name for name in layers(peer) if "GroupNorm" not in name]


@pytest.mark.parametrize("name", ON_CPU)
def test_layers_on_the_cpu(torch, name):
    dtypes = []
    for module in (torch, peer):
        layer, inputs = layers(module)[name]
        with module.autocast("cpu", dtype=module.bfloat16):
            out = results_of(layer, inputs)
        out.float().sum().backward()
        grads = {p.grad.dtype for p in layer.parameters()}
        assert grads == {module.float32}
        dtypes.append(str(out.dtype).rpartition(".")[2])
    assert dtypes[0] == dtypes[1]


@pytest.fixture
def gpu(gpu_session):
    holdfast.set_default_session(gpu_session)
    holdfast.manual_seed(0)
    yield holdfast
    assert not holdfast.is_autocast_enabled()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ROWS)
def test_types_on_a_gpu(gpu, name, dtype):
    with gpu.autocast("cuda", dtype=getattr(gpu, dtype)):
        result = ROWS[name](gpu, "cuda:1")
        # Not what is on the CPU.
        assert product(gpu).dtype is gpu.float32
    expected = [kind for kind, names in ON_GPU.items() if name in names] or [dtype]
    assert str(result.dtype) == f"holdfast.{expected[0]}"
    assert result.is_cuda


@pytest.mark.parametrize("name", layers(peer))
def test_layers_on_a_gpu(gpu, name):
    layer, inputs = layers(gpu)[name]
    inputs = [x.cuda() for x in inputs]
    layer = layer.cuda()
    with gpu.cuda.amp.autocast():
        out = results_of(layer, inputs)
    assert out.dtype is (gpu.float32 if "GroupNorm" in name else gpu.float16)
    out.float().sum().backward()
    assert {p.grad.dtype for p in layer.parameters()} == {gpu.float32}


def test_blocks_nest_and_end(gpu):
    assert gpu.get_autocast_gpu_dtype() is gpu.float16
    with gpu.autocast("cuda", dtype=gpu.bfloat16):
        assert gpu.is_autocast_enabled() and not gpu.is_autocast_cpu_enabled()
        assert product(gpu, "cuda").dtype is gpu.bfloat16
        with gpu.autocast("cuda", enabled=False):
            assert product(gpu, "cuda").dtype is gpu.float32
        with pytest.raises(ZeroDivisionError):
            with gpu.autocast("cuda", dtype=gpu.float16):
                assert gpu.get_autocast_dtype("cuda") is gpu.float16
                1 / 0
        assert gpu.get_autocast_gpu_dtype() is gpu.bfloat16
        seen = []
        thread = threading.Thread(target=lambda: seen.append(gpu.is_autocast_enabled()))
        thread.start()
        thread.join()
        assert seen == [False]  # the state is a thread's own
    assert product(gpu, "cuda").dtype is gpu.float32

    @gpu.autocast("cuda")
    def decorated():
        return product(gpu, "cuda")

    assert decorated().dtype is decorated().dtype is gpu.float16
    with pytest.raises(RuntimeError, match="must be 'cuda' or 'cpu'. Got 'tpu'"):
        gpu.autocast("tpu")
    with pytest.warns(UserWarning, match="only supports dtype of bfloat16"):
        with gpu.autocast("cpu", dtype=gpu.float16):
            assert product(gpu).dtype is gpu.float32


def casts_in(torch, body):
    with torch.profiler.profile() as profile:
        body()
    return sum(
        event.name == "aten::to" or event.name == "to" for event in profile.events()
    )


def test_a_parameter_is_cast_once_in_a_block(gpu):
    layer = gpu.nn.Linear(6, 6, bias=False).cuda()
    x = gpu.ones(1, 6, device="cuda", dtype=gpu.float16)

    def body(cache):
        with gpu.autocast("cuda", cache_enabled=cache):
            for _ in range(5):
                layer(x)

    assert casts_in(gpu, lambda: body(True)) == 1
    assert casts_in(gpu, lambda: body(False)) == 5
    with gpu.autocast("cuda"):
        first = layer(x)
        with gpu.no_grad():
            assert layer(x).dtype is gpu.float16
            layer.weight.mul_(2)
        # What was written since is cast again, and gradients reach it.
        assert gpu.equal(layer(x), first * 2)
        layer(x).sum().backward()
    assert layer.weight.grad.dtype is gpu.float32


def test_in_place_ops_keep_their_types(gpu):
    with gpu.autocast("cuda"):
        y = product(gpu, "cuda")
        assert y.exp_() is y and y.dtype is gpu.float16
        total = gpu.zeros(4, 6, device="cuda")
        total += y
        assert total.dtype is gpu.float32


def test_custom_functions(gpu):
    from holdfast.amp import custom_bwd, custom_fwd

    seen = []

    class Square(gpu.autograd.Function):
        @staticmethod
        @custom_fwd
        def forward(ctx, x):
            ctx.save_for_backward(x)
            seen.append(gpu.is_autocast_enabled())
            return x @ x

        @staticmethod
        @custom_bwd
        def backward(ctx, grad):
            seen.append(gpu.is_autocast_enabled())
            (x,) = ctx.saved_tensors
            return (grad @ x.T + x.T @ grad).float()

    class Wide(gpu.autograd.Function):
        @staticmethod
        @custom_fwd(cast_inputs=gpu.float32)
        def forward(ctx, x, others):
            seen.append((gpu.is_autocast_enabled(), x.dtype, others[0].dtype))
            return x * 2

        @staticmethod
        @custom_bwd
        def backward(ctx, grad):
            seen.append(gpu.is_autocast_enabled())
            return grad * 2, None

    x = gpu.eye(3, device="cuda").requires_grad_()
    with gpu.autocast("cuda"):
        y = Square.apply(x)
        z = Wide.apply(y, [y.detach()])
    assert y.dtype is gpu.float16 and z.dtype is gpu.float32
    z.sum().backward()
    assert seen == [True, (False, gpu.float32, gpu.float32), False, True]
    assert x.grad.tolist() == [[4.0] * 3] * 3


def test_checkpointed_functions_run_again_as_they_did(gpu):
    layer, x = gpu.nn.Linear(6, 6).cuda(), gpu.ones(2, 6, device="cuda")
    seen = []

    def function(x):
        y = layer(x)
        seen.append(y.dtype)
        return y

    with gpu.autocast("cuda"):
        y = gpu.utils.checkpoint.checkpoint(function, x.requires_grad_())
    y.float().sum().backward()
    assert seen == [gpu.float16, gpu.float16]


# ---- GradScaler


def scaled_training(torch, scaler, steps, poison=()):
    torch.manual_seed(1)
    model = torch.nn.Linear(6, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    x = torch.tensor(X, device="cuda")
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=scaler.is_enabled()):
            loss = (model(x) - 1).pow(2).mean()
        if step in poison:
            loss = loss * math.inf
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e3)
        scaler.step(optimizer)
        scaler.update()
    return [p.detach().cpu().numpy() for p in model.parameters()]


def test_scaled_training_is_training(gpu):
    scaler = gpu.cuda.amp.GradScaler(init_scale=1024.0, growth_interval=3)
    mine = scaled_training(gpu, scaler, 7)
    assert scaler.get_scale() == 4096.0  # grew at the third and the sixth step
    plain = scaled_training(gpu, gpu.cuda.amp.GradScaler(enabled=False), 7)
    for a, b in zip(mine, plain, strict=True):
        np.testing.assert_allclose(a, b, 0.02, 0.005)


def test_steps_with_inf_are_left_out(gpu):
    scaler = gpu.amp.GradScaler("cuda", init_scale=1024.0)
    poisoned = scaled_training(gpu, scaler, 4, poison=(1, 2))
    assert scaler.get_scale() == 256.0
    clean = scaled_training(gpu, gpu.amp.GradScaler("cuda", init_scale=1024.0), 2)
    for a, b in zip(poisoned, clean, strict=True):
        np.testing.assert_allclose(a, b, 1e-3, 1e-4)


def test_tiny_gradients_survive_in_float16(gpu):
    def gradient(scaler):
        w = gpu.ones(4, 4, device="cuda", requires_grad=True)
        with gpu.autocast("cuda"):
            y = gpu.ones(4, 4, device="cuda") @ w
        scaler.scale((y * 1e-9).sum()).backward()
        optimizer = gpu.optim.SGD([w], 1.0)
        scaler.unscale_(optimizer)
        return w.grad.cpu().numpy()

    assert not gradient(gpu.amp.GradScaler(enabled=False)).any()
    np.testing.assert_allclose(
        gradient(gpu.amp.GradScaler(init_scale=2.0**14)), 4e-9, 1e-2
    )


def test_a_scalers_order_and_state(gpu):
    scaler = gpu.cuda.amp.GradScaler()
    w = gpu.ones(2, device="cuda", requires_grad=True)
    optimizer = gpu.optim.SGD([w], 1.0)
    with pytest.raises(AssertionError, match="No inf checks were recorded for this"):
        scaler.step(optimizer)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    for call in (scaler.step, scaler.unscale_):
        with pytest.raises(RuntimeError, match="step"):
            call(optimizer)
    scaler.update()
    assert w.tolist() == [0, 0]
    with pytest.raises(AssertionError, match="prior to update"):
        scaler.update()
    scaler.update(8.0)
    other = gpu.cuda.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0 and other.state_dict() == scaler.state_dict()
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})
    assert scaler.scale([w, (w,)])[1][0].tolist() == [0, 0]
    half = gpu.ones(2, device="cuda", dtype=gpu.float16, requires_grad=True)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="unscale FP16 gradients"):
        scaler.unscale_(gpu.optim.SGD([half], 1.0))


@pytest.mark.filterwarnings("ignore:.*CUDA is not available")
def test_without_a_gpu_it_is_off(torch):
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = torch.cuda.amp.GradScaler()
    assert not scaler.is_enabled() and scaler.state_dict() == {}
    with torch.cuda.amp.autocast():
        assert product(torch).dtype is torch.float32
