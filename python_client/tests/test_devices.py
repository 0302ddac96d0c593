# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A daemon with several GPUs (server/fake_device, which refuses memory of another
device): what programs see of them, and of "cpu" beside them."""

import copy as copy_module
import io
import pickle
import subprocess

import numpy as np
import pytest

import holdfast
from holdfast.daemon import Daemon, find_daemon


@pytest.fixture
def torch(gpu_session):
    holdfast.set_default_session(gpu_session)
    holdfast.manual_seed(0)
    yield holdfast
    holdfast.set_default_session(gpu_session)
    assert holdfast.cuda.current_device() == 0
    assert str(holdfast.get_default_device()) == "cpu"


def test_what_there_is(torch):
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    names = [torch.cuda.get_device_properties(i).name for i in range(2)]
    assert names == ["fake device"] * 2
    with pytest.raises(RuntimeError, match="invalid device ordinal.*has 2 GPUs"):
        torch.cuda.get_device_properties(2)
    with pytest.raises(RuntimeError, match="invalid device ordinal.*Got cuda:2"):
        torch.zeros(3, device="cuda:2")
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.get_device_properties("cpu")
    assert len(torch.cuda.get_rng_state_all()) == 2


def test_where_tensors_are_made(torch):
    assert str(torch.zeros(2).device) == "cpu"
    for device, name in (
        ("cpu", "cpu"),
        ("cuda", "cuda:0"),
        (0, "cuda:0"),
        (1, "cuda:1"),
        (torch.device("cuda", 1), "cuda:1"),
        (torch.device(1), "cuda:1"),
    ):
        made = (
            torch.zeros(2, device=device),
            torch.tensor([1.0, 2.0], device=device),
            torch.as_tensor(np.ones(2), device=device),
            torch.arange(3, device=device),
            torch.linspace(0, 1, 3, device=device),
            torch.randint(5, (2,), device=device),
            torch.randn(2, device=device),
            torch.hann_window(4, device=device),
            torch.eye(2, device=device),
        )
        for x in made:
            assert str(x.device) == name and x.is_cuda == (name != "cpu")
            for like in (
                torch.zeros_like(x),
                torch.full_like(x, 3),
                torch.empty_like(x),
                x.new_ones(2),
                x.new_tensor([1]),
                x.new(3),
            ):
                assert like.device == x.device
        assert torch.zeros_like(made[0], device="cpu").is_cpu
    big = np.arange(1 << 20, dtype=np.float64)  # an upload of its own
    for device in ("cuda", "cuda:1"):
        assert torch.tensor(big, device=device).sum().item() == big.sum()


def test_the_default_may_be_another(torch):
    try:
        torch.set_default_device("cuda:1")
        assert str(torch.zeros(2).device) == "cuda:1"
        assert str(torch.tensor(1.0).device) == "cuda:1"
        assert str(torch.get_default_device()) == "cuda:1"
        assert torch.zeros_like(torch.ones(2, device="cpu")).is_cpu
        with torch.device("cpu"):
            assert torch.ones(2).is_cpu
        assert torch.nn.Linear(2, 2).weight.get_device() == 1
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        assert str(torch.zeros(2).device) == "cuda:0"
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        with torch.device("cuda:7"):
            pass


def test_the_current_gpu(torch):
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert str(torch.zeros(2, device="cuda").device) == "cuda:1"
        assert str(torch.zeros(2).cuda().device) == "cuda:1"
        with torch.cuda.device_of(torch.zeros(1, device="cuda:0")):
            assert torch.cuda.current_device() == 0
    torch.cuda.set_device("cuda:1")
    torch.cuda.set_device(0)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(5)


def test_moves_copy_and_stays_do_not(torch):
    x = torch.arange(6.0).reshape(2, 3)
    assert x.cpu() is x and x.to("cpu") is x
    for device in ("cuda:0", "cuda:1"):
        moved = x.to(device)
        assert moved.to(device) is moved and moved.cuda(device) is moved
        x[0, 0] = 9  # the copies are of before
        moved[1, 1] = 7
        back = moved.cpu()
        moved[1, 2] = -1
        assert x.tolist() == [[9, 1, 2], [3, 4, 5]]
        assert back.tolist() == [[0, 1, 2], [3, 7, 5]]
        x[0, 0] = 0
    assert x.t().to("cuda:1").cuda(0).tolist() == [[0, 3], [1, 4], [2, 5]]
    half = x.to("cuda:1", torch.float16)
    assert half.dtype is torch.float16 and str(half.device) == "cuda:1"
    assert x.to(half).dtype is torch.float16 and x.to(half).get_device() == 1
    assert x.type_as(half).get_device() == 1
    assert half.type() == "holdfast.cuda.HalfTensor"
    assert x.type("torch.cuda.FloatTensor").is_cuda
    assert isinstance(half, torch.cuda.HalfTensor)
    assert not isinstance(half, torch.HalfTensor)


def test_gradients_flow_between_devices(torch):
    a = torch.randn(3, 4, device="cuda:0", requires_grad=True)
    b = torch.randn(4, 2, device="cuda:1", requires_grad=True)
    c = torch.randn(3, 2, requires_grad=True)
    loss = ((a.to("cuda:1") @ b).cpu() * c).sin().sum()
    loss.backward()
    assert [str(t.grad.device) for t in (a, b, c)] == ["cuda:0", "cuda:1", "cpu"]
    same = [t.detach().cpu().requires_grad_() for t in (a, b, c)]
    ((same[0] @ same[1]) * same[2]).sin().sum().backward()
    for mine, theirs in zip((a, b, c), same, strict=True):
        assert torch.equal(mine.grad.cpu(), theirs.grad)
    (g,) = torch.autograd.grad(a.to("cuda:1").pow(3).sum(), a, create_graph=True)
    g.to("cuda:1").sum().backward()
    assert torch.allclose(a.grad.cpu(), same[0].grad + 6 * same[0])


def test_hooks_and_functions_see_the_device(torch):
    seen = []
    x = torch.ones(3, device="cuda:1", requires_grad=True)
    x.register_hook(lambda g: seen.append(str(g.device)))

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            seen.append(str(second.device))  # zeros made for it
            return torch.full((3,), 2.0)  # of "cpu"

    Double.apply(x)[0].sum().backward()
    assert seen == ["cuda:1", "cuda:1"]
    assert str(x.grad.device) == "cuda:1" and x.grad.tolist() == [2, 2, 2]


def test_two_gpus_do_not_mix(torch):
    a, b = (torch.ones(2, device=f"cuda:{i}") for i in range(2))
    text = r"\[add\] Expected all tensors to be on the same device, but found at least "
    with pytest.raises(RuntimeError, match=text + r"two devices, cuda:0 and cuda:1"):
        a + b
    with pytest.raises(RuntimeError, match="same device"):
        a.add_(b)
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([a, b])
    # What PyTorch keeps on the host goes along.
    assert str((b * torch.tensor(3.0)).device) == "cuda:1"
    assert b[torch.tensor([1, 0, 1])].tolist() == [1, 1, 1]
    b[torch.tensor([0])] = torch.tensor([5.0])
    assert b.tolist() == [5, 1] and a.copy_(b).tolist() == [5, 1]
    assert str(a.device) == "cuda:0"


def test_a_model_on_each_and_one_over_both(torch):
    def train(first, second):
        torch.manual_seed(3)
        head = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
        tail = torch.nn.GRU(8, 3, batch_first=True)
        head, tail = head.to(first), tail.to(second)
        x = torch.randn(5, 4).to(first)
        params = [*head.parameters(), *tail.parameters()]
        for optimizer in (
            torch.optim.Adam(params),
            torch.optim.SGD(params, 0.1, momentum=0.9),
            torch.optim.RMSprop(params),
        ):
            for _ in range(2):
                optimizer.zero_grad()
                hidden = head(x).to(second).unsqueeze(1)
                tail(hidden)[0].pow(2).mean().backward()
                torch.nn.utils.clip_grad_norm_(params, 0.1)
                optimizer.step()
        return [p.detach().cpu().numpy() for p in params]

    expected = train("cpu", "cpu")
    for devices in (("cuda:1", "cuda:1"), ("cuda:0", "cuda:1"), ("cpu", "cuda:1")):
        for mine, theirs in zip(train(*devices), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


class Tied(holdfast.nn.Module):
    """Two layers of one weight, a norm with buffers, a dict in, a tuple out."""

    def __init__(self):
        super().__init__()
        self.first = holdfast.nn.Linear(4, 4)
        self.second = holdfast.nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.norm = holdfast.nn.BatchNorm1d(4)

    def forward(self, batch, scale=1.0):
        x = self.second(self.first(batch["x"]).tanh())
        return self.norm(x) * scale, {"mean": x.mean()}


@pytest.mark.filterwarnings("ignore:Was asked to gather")
def test_data_parallel(torch):
    model = Tied().cuda()
    x = torch.randn(5, 4)
    parallel = torch.nn.DataParallel(model)
    assert parallel.device_ids == [0, 1]
    out, extra = parallel({"x": x}, scale=2.0)
    assert str(out.device) == "cuda:0" and extra["mean"].shape == (2,)
    parts, means = zip(*(model({"x": part}, 2.0) for part in x.cuda().chunk(2)))
    assert torch.equal(out, torch.cat(parts))
    (out.sin().sum() + extra["mean"].sum()).backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    loss = torch.cat(parts).sin().sum() + sum(m["mean"] for m in means)
    loss.backward()
    for mine, theirs in zip(got, model.parameters(), strict=True):
        assert torch.allclose(mine, theirs.grad, atol=1e-6)
    assert torch.nn.DataParallel(model, [1], 1).device_ids == [1]
    with pytest.raises(RuntimeError, match=r"on device cuda:1 \(device_ids\[0\]\)"):
        torch.nn.DataParallel(model, [1, 0])({"x": x})
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.nn.DataParallel(model, [0, 2])
    assert torch.nn.DataParallel(model, [0])({"x": x})[0].shape == (5, 4)
    model.eval()
    assert parallel({"x": x[:1]})[0].shape == (1, 4)  # one part only
    assert torch.nn.parallel.data_parallel(model.norm, x).shape == (5, 4)


def test_a_module_moves_with_its_gradients(torch):
    model = torch.nn.Linear(2, 2)
    weight, optimizer = model.weight, torch.optim.SGD(model.parameters(), 0.5)
    model(torch.ones(1, 2)).sum().backward()
    assert model.cuda(1) is model and model.weight is weight
    assert weight.get_device() == weight.grad.get_device() == 1
    before = weight.detach().clone()
    optimizer.step()
    assert torch.equal(before - 0.5, weight) and model.cpu().weight.is_cpu


def test_memory_of_each(torch):
    before = [torch.cuda.memory_allocated(i) for i in range(2)]
    kept = torch.ones(1 << 18, device="cuda:1")
    assert torch.cuda.memory_allocated(0) == before[0]
    assert torch.cuda.memory_allocated(1) == before[1] + kept.nbytes
    assert torch.cuda.max_memory_allocated("cuda:1") >= kept.nbytes
    assert torch.cuda.memory_reserved(1) >= kept.nbytes
    with torch.cuda.device(1):
        assert torch.cuda.memory_allocated() == before[1] + kept.nbytes
    assert {segment["device"] for segment in torch.cuda.memory_snapshot()} == {0, 1}
    del kept
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated(1) == before[1]
    torch.cuda.reset_peak_memory_stats(1)


def test_checkpoints_remember_where(torch):
    file = io.BytesIO()
    torch.save({"w": torch.arange(3.0, device="cuda:1"), "c": torch.zeros(1)}, file)

    def load(**options):
        file.seek(0)
        loaded = torch.load(file, **options)
        assert loaded["w"].tolist() == [0, 1, 2]
        return str(loaded["w"].device), str(loaded["c"].device)

    assert load() == ("cuda:1", "cpu")
    assert load(map_location="cpu") == ("cpu", "cpu")
    assert load(map_location={"cuda:1": "cuda:0"}) == ("cuda:0", "cpu")
    assert load(map_location=lambda s, where: s.cuda(0)) == ("cuda:0", "cuda:0")


def test_pickled_viewed_and_shared_tensors_stay_where_they_are(torch):
    for device in ("cpu", "cuda:0", "cuda:1"):
        x = torch.arange(4.0, device=device)
        copy = pickle.loads(pickle.dumps(x))
        assert copy.device == x.device and copy.tolist() == [0, 1, 2, 3]
        assert not copy.is_set_to(x)
        whole = x.view(torch.int32)
        assert whole.device == x.device and whole.tolist()[0] == 0
        rebuild, arguments = torch.multiprocessing.reductions.reduce_tensor(x)
        same = rebuild(*arguments)
        assert same.device == x.device
        same[1] = 7
        torch.synchronize()
        assert x.tolist() == [0, 7, 2, 3]
        assert copy_module.deepcopy(x).device == x.device


def test_sparse_and_packed_tensors_move(torch):
    sparse = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    assert str(sparse.device) == "cpu" and sparse.is_cpu
    for moved in (sparse.to("cuda:1"), sparse.cuda(1)):
        assert str(moved.device) == "cuda:1" and moved.is_cuda
        assert moved._indices().device == moved._values().device == moved.device
        product = torch.sparse.mm(moved, torch.ones(2, 1, device="cuda:1"))
        assert str(product.device) == "cuda:1" and product.tolist() == [[1], [2]]
        assert moved.cpu().to_dense().tolist() == [[0, 1], [2, 0]]
    rows = [torch.ones(3, 2), torch.ones(1, 2)]
    packed = torch.nn.utils.rnn.pack_sequence(rows).to("cuda:1")
    lstm = torch.nn.LSTM(2, 3).to("cuda:1")
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0])
    assert str(padded.device) == "cuda:1" and lengths.tolist() == [3, 1]


def test_a_checkpoint_of_more_gpus_than_there_are(torch, daemon):
    file = io.BytesIO()
    torch.save(torch.arange(3.0, device="cuda:1"), file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_FAKE_NAME", "cuda")
        with Daemon("--device=fake") as one:
            with holdfast.connect(one.shm_address):
                file.seek(0)
                with pytest.raises(RuntimeError, match="CUDA device 1 but the daemon"):
                    torch.load(file)
                with pytest.raises(RuntimeError, match="has 1 GPU, counted from 0"):
                    torch.zeros(1, device="cuda:1")
    with holdfast.connect(daemon.shm_address):
        file.seek(0)
        with pytest.raises(RuntimeError, match="computes on 'cpu'"):
            torch.load(file)
        file.seek(0)
        assert torch.load(file, map_location="cpu").tolist() == [0, 1, 2]


def test_kept_published_and_forked_tensors(torch, two_gpus, transport):
    address = two_gpus.address(transport)
    with holdfast.connect(address, session="left", attach=False) as session:
        session.keep("w", torch.arange(3.0, device="cuda:1"))
        session.close(keep=True)
    with holdfast.connect(address, session="left", attach=True) as session:
        found = session.kept()["w"]
        assert str(found.device) == "cuda:1" and (found * 2).tolist() == [0, 2, 4]
    with holdfast.connect(address):
        holdfast.publish("of-the-second", {"w": torch.ones(2, device="cuda:1")})
        # Readers find it on the first.
        assert holdfast.lookup("of-the-second")["w"].tolist() == [1, 1]
        with pytest.raises(RuntimeError, match="must be on the first device"):
            holdfast.publish(
                "writable", {"w": torch.ones(2, device="cuda:1")}, writable=True
            )
        holdfast.unpublish("of-the-second")


def test_full_memory_of_one_leaves_the_other(two_gpus):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_FAKE_NAME", "cuda")
        with Daemon("--device=fake:1,0", "--memory_limit=33554432") as daemon:
            with holdfast.connect(daemon.shm_address):
                full = holdfast.zeros(6 << 20, device="cuda:1")
                with pytest.raises(holdfast.OutOfMemoryError, match="limit"):
                    holdfast.zeros(6 << 20, device="cuda:1").sum().item()
                assert holdfast.ones(5 << 20, device="cuda:0").sum().item() == 5 << 20
                assert full.sum().item() == 0


def test_flags_that_name_no_devices():
    def error(device):
        run = subprocess.run(
            [find_daemon(), f"--device={device}"], capture_output=True, text=True
        )
        assert run.returncode == 1
        return run.stderr

    assert "there are 3 fake devices, counted from 0. Got 3" in error("fake:3")
    assert "must name each device once. Got 'fake:0,0'" in error("fake:0,0")
    for wrong in ("fake:0,", "fake:0,x", "cpu:0", "fake:every"):
        assert (
            f"--device must be cpu, cuda, cuda:N, several as cuda:N,N, or cuda:all. "
            f"Got '{wrong}'" in error(wrong)
        )


def test_all_of_them():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_FAKE_NAME", "cuda")
        with Daemon("--device=fake:all") as daemon:
            with holdfast.connect(daemon.grpc_address):
                assert holdfast.cuda.device_count() == 3
                x = holdfast.ones(2, device="cuda:2").to("cuda:1").to("cuda:2")
                assert x.tolist() == [1, 1]
