# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Op cases on the GPU against PyTorch's results there. See `run`."""

import argparse
import pathlib
import sys
import traceback

import bundle
import linalg_cases
import numpy as np
import recurrent_cases
import sharing_cases

sys.path.insert(0, str(pathlib.Path(__file__).parent))

# Relative and absolute, for results that sum up a few thousand numbers.
TOLERANCE = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2, "float64": 1e-9}


def cases():
    """(name, function of (module, tensors...), input shapes, wants positive)."""
    unary = (
        "neg abs sign exp expm1 sin cos tan tanh sigmoid erf floor ceil round trunc "
        "relu atan sinh cosh asinh"
    ).split()
    positive = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma".split()
    shapes = [(5,), (33, 65), (3, 4, 257), (1025, 1023)]
    for name in unary + positive:
        for shape in shapes:
            yield (
                f"{name}{list(shape)}",
                lambda t, x, n=name: getattr(t, n)(x),
                [shape],
                name in positive,
            )
    binary = "add sub mul div maximum minimum pow atan2 fmod remainder".split()
    for name in binary:
        for a, b in [((129, 65), (129, 65)), ((129, 65), (65,)), ((4, 1, 7), (5, 1))]:
            yield (
                f"{name}{list(a)}{list(b)}",
                lambda t, x, y, n=name: getattr(t, n)(x, y),
                [a, b],
                True,
            )
        if name in ("maximum", "minimum", "atan2"):
            continue  # PyTorch takes no number there
        yield f"{name} number", lambda t, x, n=name: getattr(t, n)(x, 3), [
            (77, 3)
        ], True
    yield "transposed add", lambda t, x, y: x.t() + y, [(65, 129), (129, 65)], False
    yield "strided in place", _strided_in_place, [(64, 64)], False
    for name in "sum mean amax amin prod var std logsumexp argmax argmin".split():
        for shape, dim in [((7, 1025), 1), ((1025, 7), 0), ((3, 500, 5), 1)]:
            yield (
                f"{name}{list(shape)} dim={dim}",
                lambda t, x, n=name, d=dim: getattr(t, n)(x, d),
                [shape],
                False,
            )
    for name in "sum mean norm".split():
        yield f"{name} of 10^6", lambda t, x, n=name: getattr(t, n)(x), [
            (1000, 1000)
        ], 0
    for name in "cumsum cumprod cummax logcumsumexp".split():
        yield f"{name}", lambda t, x, n=name: _first(getattr(t, n)(x, 1)), [
            (9, 700)
        ], False
    for shape, dim in [((64, 1000), 1), ((5, 6, 7), 1), ((3, 70000), 1)]:
        for name in ("softmax", "log_softmax"):
            yield (
                f"{name}{list(shape)} dim={dim}",
                lambda t, x, n=name, d=dim: getattr(t, n)(x, d),
                [shape],
                False,
            )
    for a, b in [
        ((64, 65), (65, 66)),
        ((1, 1000), (1000, 1)),
        ((3, 33, 17), (3, 17, 5)),
        ((2, 1, 8, 9), (4, 9, 3)),
    ]:
        yield f"matmul{list(a)}{list(b)}", lambda t, x, y: x @ y, [a, b], False
    yield "matmul transposed", lambda t, x, y: x.t() @ y.t(), [
        (65, 64),
        (66, 65),
    ], False
    F = "nn.functional"
    yield f"{F}.linear", lambda t, x, w, b: t.nn.functional.linear(x, w, b), [
        (9, 33),
        (17, 33),
        (17,),
    ], False
    for stride, padding, groups in [(1, 0, 1), (2, 1, 1), (1, 1, 4)]:
        yield (
            f"{F}.conv2d stride={stride} padding={padding} groups={groups}",
            lambda t, x, w, s=stride, p=padding, g=groups: t.nn.functional.conv2d(
                x, w, None, s, p, 1, g
            ),
            [(3, 8, 15, 17), (12, 8 // groups, 3, 3)],
            False,
        )
    yield f"{F}.max_pool2d", lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1), [
        (2, 3, 17, 19)
    ], False
    yield f"{F}.avg_pool2d", lambda t, x: t.nn.functional.avg_pool2d(x, 3, 2, 1), [
        (2, 3, 17, 19)
    ], False
    yield f"{F}.layer_norm", lambda t, x: t.nn.functional.layer_norm(x, (257,)), [
        (65, 257)
    ], False
    yield f"{F}.group_norm", lambda t, x: t.nn.functional.group_norm(x, 4), [
        (3, 8, 9, 9)
    ], False
    yield f"{F}.batch_norm", lambda t, x: t.nn.functional.batch_norm(
        x, None, None, training=True
    ), [(9, 8, 5, 5)], False
    for name in "gelu silu mish softplus elu hardswish leaky_relu".split():
        yield (
            f"{F}.{name}",
            lambda t, x, n=name: getattr(t.nn.functional, n)(x),
            [(65, 129)],
            False,
        )
    yield "sort", lambda t, x: t.sort(x, 1)[0], [(9, 1025)], False
    yield "sort long", lambda t, x: t.sort(x)[0], [(100_003,)], False
    yield "topk", lambda t, x: t.topk(x, 7)[0], [(9, 1025)], False
    yield "median", lambda t, x: t.median(x, 1)[0], [(9, 1025)], False
    yield "x[mask]", lambda t, x: x[x > 0], [(65, 129)], False
    yield "nonzero", lambda t, x: t.nonzero(x > 0), [(65, 129)], False
    yield "gather", _gather, [(65, 129)], False
    yield "index_add", _index_add, [(65, 129)], False
    yield "embedding gradient", _embedding_gradient, [(33, 17)], False
    yield "cross_entropy and gradient", _cross_entropy, [(64, 10)], False
    yield "backward of an MLP", _mlp_gradient, [(16, 8), (8, 4)], False
    yield from linalg_cases.cases()
    yield from recurrent_cases.cases()


def _first(result):
    return result[0] if isinstance(result, tuple) else result


def _strided_in_place(t, x):
    x = x.clone()
    x[::2, 1::3].mul_(2).add_(1)
    return x


def _gather(t, x):
    index = t.arange(65 * 129, device=x.device).reshape(65, 129) * 7 % 129
    return x.gather(1, index)


def _index_add(t, x):
    index = t.arange(65, device=x.device) * 3 % 5
    return x[:5].clone().index_add(0, index, x)


def _gradient(t, loss, leaf):
    loss.backward()
    return leaf.grad


def _embedding_gradient(t, x):
    table = x.clone().requires_grad_()
    index = t.arange(200, device=x.device) * 5 % 33
    return _gradient(t, (table[index] * 2).sum(), table)


def _cross_entropy(t, x):
    logits = x.clone().requires_grad_()
    target = t.arange(64, device=x.device) % 10
    return _gradient(t, t.nn.functional.cross_entropy(logits, target), logits)


def _mlp_gradient(t, x, w):
    w = w.clone().requires_grad_()
    return _gradient(t, ((x @ w).relu() ** 2).mean(), w)


def check(ours, theirs, run, shapes, positive, dtype):
    """None, or what differs."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    if positive:
        arrays = [np.abs(a) + 0.5 for a in arrays]
    arrays = [a.astype(np.float32) for a in arrays]
    # A device for tests may go by the name of cpu.
    place = "cuda" if ours.cuda.is_available() else "cpu"
    mine = [ours.tensor(a, device=place).to(getattr(ours, dtype)) for a in arrays]
    peer = [theirs.tensor(a, device="cuda").to(getattr(theirs, dtype)) for a in arrays]
    expected = run(theirs, *peer).detach().double().cpu().numpy()
    got = run(ours, *mine).detach().double().numpy()
    if got.shape != expected.shape:
        return f"shape {got.shape}, PyTorch's is {expected.shape}"
    tolerance = TOLERANCE[dtype]
    if np.allclose(got, expected, tolerance, tolerance, equal_nan=True):
        return None
    return f"differs by up to {np.nanmax(np.abs(got - expected)):g}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", help="what ./dev bundle --cuda made")
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("-k", dest="only", default="", help="cases with this word")
    parser.add_argument("--device", default="cuda", help="the daemon's --device")
    args = parser.parse_args()
    bundle.use_client(args.bundle)
    try:
        import torch
    except ImportError:
        raise SystemExit("tests/gpu/run needs PyTorch to compare with") from None
    skipped = bundle.reason_to_skip(torch, args.device)
    if skipped:
        bundle.report(args.json, skipped=skipped, results=[])
        print(f"tests/gpu/run: skipped, {skipped}")
        return 0
    # As Holdfast computes: float32 products without TF32.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    import holdfast

    results = []
    with bundle.start_daemon(args.device) as daemon:
        holdfast.connect(daemon.shm_address)
        for name, run, shapes, positive in cases():
            for dtype in ("float32", "float16", "bfloat16"):
                label = f"{name} {dtype}"
                if args.only not in label:
                    continue
                try:
                    fault = check(holdfast, torch, run, shapes, positive, dtype)
                except Exception as error:  # each case is its own
                    fault = f"{type(error).__name__}: {error}"
                    if daemon.process.poll() is not None:
                        traceback.print_exc()
                        raise SystemExit(f"{label}: the daemon ended") from None
                results.append({"case": label, "fault": fault})
                if fault:
                    print(f"FAILED {label}: {fault}", flush=True)
        for label, run in sharing_cases.cases():
            if args.only not in label:
                continue
            fault = None
            try:
                run(holdfast, torch)
            except Exception as error:  # an assertion has no text
                line = traceback.extract_tb(error.__traceback__)[-1]
                fault = f"{type(error).__name__}: {error} ({line.line})"
            results.append({"case": label, "fault": fault})
            if fault:
                print(f"FAILED {label}: {fault}", flush=True)
    failed = sum(r["fault"] is not None for r in results)
    bundle.report(args.json, results=results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
