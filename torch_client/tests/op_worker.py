# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A process that runs OpInfo's samples: a request a line on stdin (kind, op, limit), a
report a line on the descriptor it was started with. What it dies of is one op's
failure."""

import itertools
import json
import os
import sys
import warnings

import torch

KINDS = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "grad": torch.float64,
    "gradgrad": torch.float64,
    "errors": torch.float32,
}


def key(op):
    variant = op.variant_test_name
    return f"{op.name}.{variant}" if variant else op.name


def operators():
    """OpInfos by key."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {key(op): op for op in op_db}


def concerns(kind, op):
    """Whether an OpInfo belongs to a kind of run."""
    if kind == "errors":
        return op.error_inputs_func is not None
    if KINDS[kind] not in op.dtypes:
        return False
    if kind == "grad":
        return op.supports_autograd
    return kind != "gradgrad" or (op.supports_autograd and op.supports_gradgrad)


def keys_of(kind):
    return [name for name, op in operators().items() if concerns(kind, op)]


def samples_of(kind, op):
    torch.manual_seed(0)
    if kind == "errors":
        return op.error_inputs("cpu")
    return op.sample_inputs(
        "cpu", KINDS[kind], requires_grad=kind in ("grad", "gradgrad")
    )


def check(kind, op, sample):
    import op_compare

    if kind == "errors":
        return op_compare.refuses(op, sample)
    if kind in ("grad", "gradgrad"):
        return op_compare.gradients(op, sample, kind == "gradgrad")
    return op_compare.forward(op, sample)


def run(kind, op, limit):
    """{"samples": number compared, "error": text or None} of up to `limit` samples."""
    done = 0
    for sample in itertools.islice(samples_of(kind, op), limit):
        try:
            done += bool(check(kind, op, sample))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            where = str(sample)[:300]
            return {"samples": done, "error": text[:1500], "sample": where}
    return {"samples": done, "error": None}


def spread(limit):
    """A few samples are the first ones."""
    return limit or None


def main():
    reports = os.fdopen(int(sys.argv[1]), "w")
    warnings.simplefilter("ignore")
    import holdfast_torch

    holdfast_torch.connect(sys.argv[2])
    known = operators()
    print(json.dumps({"ready": True}), file=reports, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        report = run(request["kind"], known[request["op"]], spread(request["limit"]))
        print(json.dumps(report), file=reports, flush=True)


if __name__ == "__main__":
    main()
