# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and their gradients, for run_cases.py: by cuDNN, by own kernels."""

import contextlib

LAYERS = {
    "RNN": {"nonlinearity": "relu"},
    "RNN tanh": {},
    "LSTM": {},
    "GRU": {},
}


def cases():
    """As run_cases.cases()."""
    # Of cuDNN's algorithms: for small layers, persistent, for all others.
    sizes = [(9, 8, 33, 40), (12, 16, 128, 256), (7, 3, 20, 300)]
    for name in LAYERS:
        for steps, batch, inputs, hidden in sizes:
            yield _case(name, (steps, batch, inputs), hidden)
        shape = (9, 4, 33)
        yield _case(name, shape, 40, num_layers=2, bidirectional=True)
        yield _case(name, shape, 40, bias=False, batch_first=True)
        yield _case(name, shape, 40, lengths=[9, 5, 5, 2])
        yield _case(name, shape, 40, lengths=[9, 6, 3, 1], bidirectional=True)
        for switch in ("deterministic", "enabled"):
            yield _case(name, shape, 40, switch=switch, bidirectional=True)
    yield _case("LSTM", (9, 4, 33), 40, proj_size=16)
    yield _case("LSTM", (9, 4, 33), 40, num_layers=2, dropout=0.5, evaluate=True)


def _case(name, shape, hidden, lengths=None, switch=None, evaluate=False, **kwargs):
    def run(t, x):
        with _numerics(t, switch):
            return _layer(t, x, name, hidden, lengths, evaluate, kwargs)

    words = {**kwargs, "lengths": lengths, "switch": switch, "evaluate": evaluate}
    text = " ".join(f"{k}={v}" for k, v in words.items() if v)
    return f"nn.{name} {list(shape)} {hidden} {text}".strip(), run, [shape], False


@contextlib.contextmanager
def _numerics(t, switch):
    """Without TF32; with `switch` the way that leads past cuDNN here."""
    flags = t.backends.cudnn
    before = flags.allow_tf32, flags.deterministic, flags.enabled
    flags.allow_tf32 = False
    if switch == "deterministic":
        flags.deterministic = True
    elif switch == "enabled":
        flags.enabled = False
    try:
        yield
    finally:
        flags.allow_tf32, flags.deterministic, flags.enabled = before


def _layer(t, x, name, hidden, lengths, evaluate, kwargs):
    """The output, the states and all gradients, in one tensor."""
    make = getattr(t.nn, name.split()[0])
    options = {**LAYERS[name], **kwargs}
    layer = make(x.shape[-1], hidden, **options).to(x.device, x.dtype)
    with t.no_grad():
        for i, p in enumerate(layer.parameters()):
            wave = t.arange(p.numel(), dtype=t.float32, device=x.device)
            wave = (wave * (0.37 + 0.1 * i)).sin() / hidden**0.5
            p.copy_(wave.reshape(p.shape))
    if evaluate:
        layer.eval()
    x = x.detach().clone().requires_grad_()
    rows = x
    if lengths is not None:
        rows = t.nn.utils.rnn.pack_padded_sequence(x, lengths)
    output, states = layer(rows)
    output = output.data if lengths is not None else output
    states = states if isinstance(states, tuple) else (states,)
    results = [output, *states]
    scale = 0.1
    sum((r.float() ** 2).sum() * scale for r in results).backward()
    grads = [x.grad, *(p.grad for p in layer.parameters())]
    return t.cat([r.float().flatten() for r in (*results, *grads)])
