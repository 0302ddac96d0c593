# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.cuda, where there is no GPU."""

import pytest


def test_cuda_is_asked_for_in_vain(torch):
    assert torch.cuda.is_available() is False and torch.cuda.device_count() == 0
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.nn.Linear(2, 2).to(device).weight.device == device
    torch.cuda.manual_seed_all(1)
    with pytest.raises(NotImplementedError, match="torch.cuda.CUDAGraph"):
        torch.cuda.CUDAGraph
    with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
        torch.cuda.init()
    assert not torch.cuda.is_bf16_supported() and not torch.cuda.is_initialized()
    assert not torch.mps.is_available() and not torch.xpu.is_available()
    assert torch.cpu.is_available() and torch.version.cuda is None


def test_questions_about_a_gpu_that_is_not_there(torch):
    for ask in ("get_device_name", "get_device_properties", "mem_get_info"):
        with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
            getattr(torch.cuda, ask)(0)
    assert torch.cuda.memory_stats() == {} and not torch.has_cuda
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    kept = torch.zeros(1 << 20)
    assert torch.cuda.max_memory_reserved() >= kept.nbytes
    torch.cuda.seed_all()
    first = torch.cuda.initial_seed()
    torch.cuda.seed()
    assert torch.cuda.initial_seed() != first


def test_an_event_waits_for_what_was_sent(torch):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="must be recorded"):
        begin.elapsed_time(end)
    x = torch.rand(300, 300)
    with torch.cuda.stream(torch.cuda.Stream()):
        begin.record()
        for _ in range(20):
            x = (x @ x).softmax(0)
        torch.cuda.current_stream().record_event(end)
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) > 0.1


def test_memory_is_summed_up(torch):
    torch.cuda.reset_max_memory_allocated()
    kept = torch.zeros(1 << 20)
    rows = torch.cuda.memory_summary().splitlines()
    assert rows[1].split()[0] == "allocated" and kept.numel()
    assert float(rows[1].split()[1]) >= 4
    assert float(rows[2].split()[2]) >= float(rows[1].split()[2])


def test_custom_functions_carry_amps_marks(torch):
    from holdfast.cuda.amp import custom_bwd, custom_fwd

    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        @custom_bwd
        def backward(ctx, grad):
            return 2 * grad

    x = torch.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_switches_of_a_gpus_arithmetic(torch):
    backends = torch.backends
    assert not backends.cuda.matmul.allow_tf32 and backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == "highest"
    torch.set_float32_matmul_precision("medium")
    assert backends.cuda.matmul.allow_tf32
    assert torch.get_float32_matmul_precision() == "medium"
    backends.cuda.matmul.allow_tf32 = False
    assert torch.get_float32_matmul_precision() == "highest"
    assert backends.cudnn.enabled
    backends.cudnn.benchmark = True
    with backends.cudnn.flags(enabled=False):
        assert not backends.cudnn.enabled
    assert backends.cudnn.enabled
    with backends.cudnn.flags(deterministic=True, allow_tf32=False):
        assert backends.cudnn.deterministic and not backends.cudnn.benchmark
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).tolist() == [[2.0] * 2] * 2
    assert backends.cudnn.benchmark and not backends.cudnn.deterministic
    backends.cudnn.benchmark = False
    with pytest.raises(TypeError, match="expected a bool, but got str"):
        backends.cudnn.allow_tf32 = "no"


def test_memory_goes_back_when_asked(torch):
    torch.zeros(1 << 22)
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before - (16 << 20)
    assert torch.cuda.max_memory_reserved() == before
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_reserved() < before
    from holdfast import memory

    stats = memory.memory_stats()
    assert stats["reserved_bytes.all.current"] == torch.cuda.memory_reserved()
    assert stats["allocation.all.allocated"] > 0 == stats["num_ooms"]


def test_a_snapshot_tiles_what_is_reserved(torch):
    kept = [torch.ones(n) for n in (3, 1000, 1 << 20)]
    segments = torch.cuda.memory_snapshot()
    assert sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved()
    assert sum(s["allocated_size"] for s in segments) == torch.cuda.memory_allocated()
    assert {s["segment_type"] for s in segments} == {"small", "large"}
    requested = []
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at and block["size"] >= block["requested_size"]
            at += block["size"]
            if block["state"] == "active_allocated":
                requested.append(block["requested_size"])
        assert at == segment["address"] + segment["total_size"]
    assert {x.nbytes for x in kept} <= set(requested)


def test_what_the_daemon_tells_of_a_gpu(torch):
    from holdfast.cuda import devices

    told = {
        "name": "NVIDIA H200",
        "major": 9,
        "minor": 0,
        "total_bytes": 1 << 37,
        "multi_processors": 132,
    }
    assert devices.properties_of(told, 0) == ("NVIDIA H200", 9, 0, 1 << 37, 132)
    assert devices.properties_of(told, 1 << 30).total_memory == 1 << 30
