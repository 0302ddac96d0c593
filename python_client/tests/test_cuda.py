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
    assert "in use 4." in torch.cuda.memory_summary() and kept.numel()


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
