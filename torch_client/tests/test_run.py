# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`holdfast run --torch`: programs for a GPU box, unchanged."""

import re
from pathlib import Path

import pytest

RUN = ("-m", "holdfast", "run", "--torch")
PROGRAM = Path(__file__).with_name("gpu_program.py")


@pytest.fixture
def run_with_pytorch(daemon, transport, run):
    """Runs `holdfast run --torch` with these arguments; returns its output."""

    def run_it(*arguments):
        address = daemon.address(transport)
        return run(None, "--address", address, *arguments, options=RUN)

    return run_it


@pytest.mark.parametrize("workers", [0, 2])
def test_a_training_for_a_gpu(run_with_pytorch, workers):
    said = run_with_pytorch(PROGRAM, "--epochs", 4, "--workers", workers)
    losses = [float(loss) for loss in re.findall(r"epoch \d: (\S+)", said)]
    assert len(losses) == 4 and losses[-1] < losses[0]
    assert said.startswith("on 1 GPU holdfast cpu")
    assert re.search(r"guessed \[.*\] holdfast:0\nholdfast:0 True\n$", said)


def test_cuda_in_every_place(run_with_pytorch, tmp_path):
    program = tmp_path / "places.py"
    program.write_text(
        """
import sys, torch
assert __name__ == "__main__" and sys.argv[1:] == ["--flag"]
made = [
    torch.zeros(2, device="cuda"),
    torch.ones(2).cuda(),
    torch.ones(2).to("cuda", torch.int64),
    torch.tensor([1.0], device=torch.device("cuda", 0)),
    torch.zeros(2).new_ones(3, device="cuda"),
    torch.zeros_like(torch.zeros(2, device="cpu"), device="cuda"),
    torch.nn.Linear(2, 2, device="cuda").weight,
    torch.nn.Linear(2, 2).cuda().weight,
    torch.empty(3),
    torch.arange(3.0),
]
print({str(x.device) for x in made})
array = torch.ones(2).numpy()
print(torch.ones(2, device="cpu").device, torch.from_numpy(array).device)
scaler = torch.amp.GradScaler()
print(scaler.is_enabled(), scaler.scale(torch.ones(())).item())
print(torch.randperm(4, generator=torch.Generator()).device)
torch.cuda.Event().record()
with torch.cuda.stream(torch.cuda.Stream()):
    torch.cuda.current_stream().synchronize()
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
print(torch.cuda.max_memory_allocated() > 0, torch.get_default_device())
"""
    )
    said = run_with_pytorch(program, "--flag").splitlines()
    assert said == [
        "{'holdfast:0'}",
        "cpu cpu",
        "True 65536.0",
        "cpu",
        "True holdfast:0",
    ]


def test_autocast_for_cuda(run_with_pytorch, tmp_path):
    program = tmp_path / "autocast.py"
    program.write_text(
        """
import torch
with torch.autocast("cuda", dtype=torch.bfloat16):
    print((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
"""
    )
    assert run_with_pytorch(program) == "torch.bfloat16\n"


def test_another_default_device(run_with_pytorch, tmp_path):
    program = tmp_path / "default.py"
    program.write_text("import torch\nprint(torch.ones(2).device)\n")
    assert run_with_pytorch("--default-device", "cpu", program) == "cpu\n"


def test_a_traceback_begins_in_the_program(daemon, start, tmp_path):
    program = tmp_path / "fails.py"
    program.write_text("import torch\ntorch.ones(2).cuda() + torch.ones(3).cuda()\n")
    address = daemon.shm_address
    program = start(None, "--address", address, program, options=RUN)
    status, _, err = program.finish()
    assert status == 1 and err.count("Traceback") == 1
    first = err.splitlines()[1]
    assert "fails.py" in first and "line 2" in first
    assert "RuntimeError" in err.splitlines()[-1]
