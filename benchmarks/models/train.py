# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Training steps of one model on one synthetic batch, as ordinary PyTorch code:
`python train.py MODEL` or `holdfast run train.py MODEL`, on a GPU with --device.
Prints JSON."""

import argparse
import importlib
import json
import os
import time

import numpy
import torch


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a module beside this one")
    parser.add_argument("--steps", type=int, default=10, help="in a window")
    parser.add_argument("--windows", type=int, default=2, help="least of how many")
    parser.add_argument("--weights", help="state_dict to begin with")
    parser.add_argument("--save", help="write the state_dict here, and end")
    parser.add_argument(
        "--losses",
        action="store_true",
        help="every loss, in float64 and without dropout; no timing",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--autocast", help="a dtype: forward passes under autocast")
    parser.add_argument("--batch", type=int, help="samples in a step")
    parser.add_argument("--memory", action="store_true", help="peak memory of a step")
    return parser.parse_args()


class Training:
    def __init__(self, task, args):
        torch.manual_seed(0)
        self.task = task
        if args.batch:
            task.batch = args.batch
        self.autocast = torch.autocast(
            args.device.partition(":")[0],
            dtype=getattr(torch, args.autocast or "bfloat16"),
            enabled=args.autocast is not None,
        )
        self.model = task.build()
        if args.weights:
            self.model.load_state_dict(torch.load(args.weights))
        self.model.to(args.device)
        self.optimizer = task.optimizer(self.model.parameters())
        data = task.data(numpy.random.default_rng(0))
        self.batch = [torch.from_numpy(part).to(args.device) for part in data]

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            loss = self.task.loss(self.model, *self.batch)
        loss.backward()
        self.optimizer.step()
        return loss

    def window(self, steps):
        """Seconds per step; the last loss is read."""
        start = time.perf_counter()
        for _ in range(steps):
            loss = self.step()
        loss.item()
        return (time.perf_counter() - start) / steps

    def without_noise(self):
        """Without dropout, and in float64: five steps of a deep network in float32
        make 5 % of rounding, under PyTorch with one thread and with two, too."""
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        self.model.double()
        self.batch = [b.double() if b.is_floating_point() else b for b in self.batch]

    def peak(self):
        """Bytes of tensors at the fullest moment of a step."""
        self.step()
        self.optimizer.zero_grad(set_to_none=True)
        if hasattr(torch, "max_memory_allocated"):
            torch.reset_peak_memory_stats()
            self.step()
            return torch.max_memory_allocated()
        lasting = [*self.batch, *self.model.parameters(), *self.model.buffers()]
        for state in self.optimizer.state.values():
            lasting += [v for v in state.values() if isinstance(v, torch.Tensor)]
        with torch.autograd.profiler.profile(profile_memory=True) as profile:
            self.step()
        # Bytes of each allocation, negative when freed, in order.
        size = peak = 0
        for event in profile.kineto_results.events():
            if event.name() == "[memory]":
                size += event.nbytes()
                peak = max(peak, size)
        return sum(t.numel() * t.element_size() for t in lasting) + peak


def memory_of(device):
    """Bytes of tensors at the fullest moment so far, and bytes held for them; of a
    GPU alone."""
    if device == "cpu":
        return {}
    return {
        "allocated": torch.cuda.max_memory_allocated(device),
        "reserved": torch.cuda.max_memory_reserved(device),
    }


def main():
    args = arguments()
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    training = Training(importlib.import_module(args.model).TASK, args)
    if args.save:
        torch.save(training.model.state_dict(), args.save)
        return
    if args.losses:
        training.without_noise()
        result = {"losses": [training.step().item() for _ in range(args.steps)]}
    elif args.memory:
        result = {"peak": training.peak()}
    else:
        # The second step still touches memory for the first time: what the first
        # one's gradients and the optimizer's state leave no room for.
        training.window(3)
        windows = [training.window(args.steps) for _ in range(args.windows)]
        result = {"seconds": min(windows), **memory_of(args.device)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
