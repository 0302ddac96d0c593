# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Recurrent layers: RNN, LSTM (Hochreiter & Schmidhuber 1997), GRU (Cho et al. 2014).

A layer's direction is one op, `rnn_layer`, which runs the steps.
"""

import math
import warnings

import holdfast
from holdfast import _C
from holdfast.amp.autocast_mode import as_recurrent

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence

_ops = _C.ops
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
_MODES = {"RNN_TANH": "tanh", "RNN_RELU": "relu", "LSTM": "lstm", "GRU": "gru"}
_PEERS_STATE = (
    "_all_weights",
    "_flat_weights",
    "_flat_weights_names",
    "_flat_weight_refs",
)


class RNNBase(Module):
    """What RNN, LSTM and GRU share.

    Input [T, N, input_size] ([N, T, input_size] with batch_first, [T, input_size]
    for one sample) or a PackedSequence; states [layers * directions, N,
    hidden_size], zero unless given. Parameters weight_ih_l<k>[_reverse] [gates *
    hidden, inputs], weight_hh_..., bias_ih_..., bias_hh_... start uniform in
    +-1/sqrt(hidden_size). `dropout` is between layers, in training.
    """

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the "
                "probability of an element being zeroed"
            )
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if proj_size and mode != "LSTM":
            raise ValueError(
                "proj_size argument is only supported for LSTM, not RNN or GRU"
            )
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so "
                "non-zero dropout expects num_layers greater than 1, but got "
                f"dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        options = {"device": device, "dtype": dtype}
        rows = _GATES[mode] * hidden_size
        directions = 2 if bidirectional else 1
        outputs = proj_size or hidden_size
        for number, suffix in enumerate(self._suffixes):
            columns = input_size if number < directions else outputs * directions
            shapes = {"weight_ih": (rows, columns), "weight_hh": (rows, outputs)}
            if bias:
                shapes.update(bias_ih=(rows,), bias_hh=(rows,))
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for name, shape in shapes.items():
                parameter = Parameter(holdfast.empty(shape, **options))
                setattr(self, name + suffix, parameter)
        self.reset_parameters()

    @property
    def _suffixes(self):
        """Of the parameters' names, per layer and direction."""
        directions = ("", "_reverse")[: 2 if self.bidirectional else 1]
        return [f"_l{i}{d}" for i in range(self.num_layers) for d in directions]

    def __getstate__(self):
        # PyTorch's modules look for their weights in these.
        names = [self._names(suffix) for suffix in self._suffixes]
        flat = [name for layer in names for name in layer]
        return {
            **super().__getstate__(),
            "_all_weights": names,
            "_flat_weights_names": flat,
            "_flat_weights": [getattr(self, name) for name in flat],
        }

    def __setstate__(self, state):
        own = {k: v for k, v in state.items() if k not in _PEERS_STATE}
        super().__setstate__(own)

    def reset_parameters(self):
        """Draws every parameter anew."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self):
        """Nothing to do: PyTorch's arranges memory for cuDNN."""

    @property
    def all_weights(self):
        """The parameters of each layer and direction, as lists."""
        return [[getattr(self, n) for n in self._names(s)] for s in self._suffixes]

    def _names(self, suffix):
        names = ["weight_ih", "weight_hh"]
        if self.bias:
            names += ["bias_ih", "bias_hh"]
        if self.proj_size:
            names.append("weight_hr")
        return [name + suffix for name in names]

    @as_recurrent
    def forward(self, input, hx=None):
        packed = isinstance(input, PackedSequence)
        sizes = order = None
        if packed:
            data, sizes = input.data, input.batch_sizes
            order = input.sorted_indices
            batch, single = int(sizes[0].item()), False
        else:
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got "
                    f"{input.dim()}D instead"
                )
            single = input.dim() == 2
            data = input
            if single:
                data = input.unsqueeze(1)
            elif self.batch_first:
                data = input.transpose(0, 1)
            batch = data.shape[1]
        if data.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {data.shape[-1]}"
            )
        states = self._initial(hx, data, batch, single, order)
        output, hidden, cell = self._run(data, sizes, *states)
        if packed:
            output = PackedSequence(output, sizes, order, input.unsorted_indices)
        elif single:
            output = output.squeeze(1)
        elif self.batch_first:
            output = output.transpose(0, 1)
        if packed and order is not None:
            back = input.unsorted_indices
            hidden = hidden.index_select(1, back)
            cell = None if cell is None else cell.index_select(1, back)
        if single:
            hidden = hidden.squeeze(1)
            cell = None if cell is None else cell.squeeze(1)
        return output, (hidden if cell is None else (hidden, cell))

    def _initial(self, hx, data, batch, single, order):
        """(h0, c0 or None) [layers * directions, N, hidden], in packed order."""
        count = len(self._suffixes)
        shapes = [(count, batch, self.proj_size or self.hidden_size)]
        lstm = self.mode == "LSTM"
        if lstm:
            shapes.append((count, batch, self.hidden_size))
        if hx is None:
            states = [holdfast.zeros(shape, dtype=data.dtype) for shape in shapes]
            return states[0], (states[1] if lstm else None)
        states = tuple(hx) if lstm else (hx,)
        if single:
            for state in states:
                if state.dim() != 2:
                    raise RuntimeError(
                        "For unbatched 2-D input, hx should also be 2-D but got "
                        f"{state.dim()}-D tensor"
                    )
            states = tuple(state.unsqueeze(1) for state in states)
        for number, (state, shape) in enumerate(zip(states, shapes)):
            if tuple(state.shape) != shape:
                raise RuntimeError(
                    f"Expected hidden{[f'[{number}]', ''][not lstm]} size {shape}, "
                    f"got {list(state.shape)}"
                )
        if order is not None:
            states = tuple(state.index_select(1, order) for state in states)
        return states if lstm else (states[0], None)

    def _run(self, data, sizes, h0, c0):
        mode = _MODES[self.mode]
        directions = 2 if self.bidirectional else 1
        hidden, cells = [], []
        grad = holdfast.is_grad_enabled()
        states = h0.requires_grad or (c0 is not None and c0.requires_grad)
        for layer in range(self.num_layers):
            if layer > 0 and self.dropout > 0 and self.training:
                data = F.dropout(data, self.dropout)
            outputs = []
            for reverse in range(directions):
                number = layer * directions + reverse
                names = self._names(self._suffixes[number])
                weights = [getattr(self, name) for name in names]
                biases = weights[2:4] if self.bias else (None, None)
                cell = None if c0 is None else c0[number]
                state = (sizes, h0[number], cell)
                if self.proj_size:
                    gates = _ops.linear(data, weights[0], biases[0])
                    output, hn, cn = _projected(
                        gates, *state, weights[1], biases[1], weights[-1], bool(reverse)
                    )
                else:
                    # What the gradient needs is kept only where there will be one.
                    save = grad and (
                        states
                        or data.requires_grad
                        or any(weight.requires_grad for weight in weights)
                    )
                    output, hn, cn = _ops.rnn_layer(
                        data, *state, *weights[:2], *biases, mode, bool(reverse), save
                    )[:3]
                outputs.append(output)
                hidden.append(hn)
                cells.append(cn)
            data = outputs[0] if directions == 1 else holdfast.cat(outputs, -1)
        cell = None if c0 is None else holdfast.stack(cells)
        return data, holdfast.stack(hidden), cell

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


def _projected(gates, sizes, h, c, weight_hh, bias_hh, weight_hr, reverse):
    """rnn_layer() of an LSTM whose h' is W_hr (o * tanh(c')) (Sak et al. 2014), step
    by step: (output, h_n, c_n), gates [T, N, 4 hidden], or rows packed by sizes."""
    if sizes is None:
        steps = list(gates.unbind(0))
    else:
        steps = list(gates.split(sizes.tolist()))
    first = (h, c)
    if reverse:
        steps.reverse()
        h, c = (state[: steps[0].size(0)] for state in first) if steps else first
    outputs, ended = [], []
    for x in steps:
        rows, before = x.size(0), h.size(0)
        if rows < before:  # the shortest sequences are over
            ended.append((h[rows:], c[rows:]))
            h, c = h[:rows], c[:rows]
        elif rows > before:  # going backwards, the shorter ones begin
            h, c = (
                holdfast.cat([state, start[before:rows]])
                for state, start in zip((h, c), first)
            )
        i, f, g, o = (x + _ops.linear(h, weight_hh, bias_hh)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = _ops.linear(o.sigmoid() * c.tanh(), weight_hr)
        outputs.append(h)
    if reverse:
        outputs.reverse()
    for rest_h, rest_c in reversed(ended):
        h, c = holdfast.cat([h, rest_h]), holdfast.cat([c, rest_c])
    return (holdfast.stack(outputs) if sizes is None else holdfast.cat(outputs)), h, c


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it (Elman 1990)."""

    __doc__ += RNNBase.__doc__.partition("\n")[2]

    def __init__(self, *args, nonlinearity="tanh", **kwargs):
        if len(args) > 3:  # PyTorch: input_size, hidden_size, num_layers, nonlinearity
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory; gates i, f, g, o; the state is (h, c)."""

    __doc__ += RNNBase.__doc__.partition("\n")[2]

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units; gates r, z, n."""

    __doc__ += RNNBase.__doc__.partition("\n")[2]

    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)


# ---- cells: one step, of ops that can be differentiated any number of times


class RNNCellBase(Module):
    """What the cells share: weight_ih, weight_hh, bias_ih, bias_hh.

    Input [N, input_size] or [input_size]; states [N, hidden_size] or [hidden_size],
    zero unless given.
    """

    _chunks = 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        options = {"device": device, "dtype": dtype}
        rows = self._chunks * hidden_size
        self.weight_ih = Parameter(holdfast.empty((rows, input_size), **options))
        self.weight_hh = Parameter(holdfast.empty((rows, hidden_size), **options))
        for name in ("bias_ih", "bias_hh"):
            tensor = Parameter(holdfast.empty((rows,), **options)) if bias else None
            self.register_parameter(name, tensor)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws every parameter anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _state(self, input, hx):
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got "
                f"{input.dim()}D instead"
            )
        if hx is None:
            shape = tuple(input.shape)[:-1] + (self.hidden_size,)
            return holdfast.zeros(shape, dtype=input.dtype)
        return hx

    def _gates(self, input, h):
        """The input's gates and the state's, each [N, gates * hidden]."""
        return (
            _ops.linear(input, self.weight_ih, self.bias_ih),
            _ops.linear(h, self.weight_hh, self.bias_hh),
        )

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else text + f", bias={self.bias}"


class RNNCell(RNNCellBase):
    """One step of RNN: (input, h) -> h."""

    def __init__(
        self,
        input_size,
        hidden_size,
        bias=True,
        nonlinearity="tanh",
        device=None,
        dtype=None,
    ):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    @as_recurrent
    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        own, hidden = self._gates(input, self._state(input, hx))
        return getattr(own + hidden, self.nonlinearity)()

    def extra_repr(self):
        text = super().extra_repr()
        if self.nonlinearity == "tanh":
            return text
        return f"{text}, nonlinearity={self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """One step of LSTM: (input, (h, c)) -> (h, c)."""

    _chunks = 4

    @as_recurrent
    def forward(self, input, hx=None):
        zeros = self._state(input, None) if hx is None else None
        h, c = (zeros, zeros) if hx is None else hx
        own, hidden = self._gates(input, self._state(input, h))
        i, f, g, o = (own + hidden).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class GRUCell(RNNCellBase):
    """One step of GRU: (input, h) -> h."""

    _chunks = 3

    @as_recurrent
    def forward(self, input, hx=None):
        h = self._state(input, hx)
        own, hidden = self._gates(input, h)
        own_r, own_z, own_n = own.chunk(3, -1)
        hidden_r, hidden_z, hidden_n = hidden.chunk(3, -1)
        r = (own_r + hidden_r).sigmoid()
        z = (own_z + hidden_z).sigmoid()
        n = (own_n + r * hidden_n).tanh()
        return n + z * (h - n)
