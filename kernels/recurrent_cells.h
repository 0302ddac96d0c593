// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One step of each recurrent cell for one sample, on h units: forward, and
// backward from the values that forward saved. `x` are the input's gates with
// all biases that can be added to them (FoldedBias), `r` those of the hidden
// state (W h).
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_RECURRENT_CELLS_H_
#define HOLDFAST_KERNELS_RECURRENT_CELLS_H_

#include <cstdint>

#include "kernels/fast_exp.h"
#include "ops/host_device.h"

namespace holdfast {

template <typename T>
HOLDFAST_HD T CellSigmoid(T x) {
  return T(1) / (T(1) + FastExp(-x));
}
template <typename T>
HOLDFAST_HD T CellTanh(T x) {
  return T(2) * CellSigmoid(T(2) * x) - T(1);
}

// What a step of one sample reads and writes; which members count depends on
// the cell. Forward: state (h, c) is read and written, the rest written.
// Backward: hidden_grad and cell_grad come in as the gradients of this step's
// state, and go out as those of the state before, less what flows through W.
template <typename T>
struct CellStep {
  const T *x, *r;  // forward; `gates` may be where x is
  const T* bias;   // forward, GRU: of the hidden part of n
  T *h, *c;        // forward: the state
  T *out, *gates, *cells;
  const T* h_before;  // backward: the state before this step
  const T* c_before;
  T *hidden_grad, *cell_grad;
  T* x_grad;  // gradients of x and r; LSTM and plain cells have one for both
  T* r_grad;
};

// Element j of the bias that is added to the input's gates. Only a GRU's n has
// a hidden part that is not a summand of its own.
template <typename T>
HOLDFAST_HD T FoldedBias(bool gru, int64_t hidden, const T* bias_ih,
                         const T* bias_hh, int64_t j) {
  return gru && j >= 2 * hidden ? bias_ih[j] : bias_ih[j] + bias_hh[j];
}

// The loop over a sample's units. Cell::Unit(s, j, n) takes unit j of n.
template <typename T, typename Cell>
struct CellLoop {
  static HOLDFAST_HD int Run(const CellStep<T>* step, int64_t n) {
    const CellStep<T> s = *step;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) Cell::Unit(s, j, n);
    return 0;
  }
};

// Gates i, f, g, o.
template <typename T>
struct LstmForward : CellLoop<T, LstmForward<T>> {
  static HOLDFAST_HD void Unit(const CellStep<T>& s, int64_t j, int64_t n) {
    const T i = CellSigmoid(s.x[j] + s.r[j]);
    const T f = CellSigmoid(s.x[n + j] + s.r[n + j]);
    const T g = CellTanh(s.x[2 * n + j] + s.r[2 * n + j]);
    const T o = CellSigmoid(s.x[3 * n + j] + s.r[3 * n + j]);
    const T c = f * s.c[j] + i * g;
    const T h = o * CellTanh(c);
    s.gates[j] = i;
    s.gates[n + j] = f;
    s.gates[2 * n + j] = g;
    s.gates[3 * n + j] = o;
    s.c[j] = c;
    s.cells[j] = c;
    s.h[j] = h;
    s.out[j] = h;
  }
};

template <typename T>
struct LstmBackward : CellLoop<T, LstmBackward<T>> {
  static HOLDFAST_HD void Unit(const CellStep<T>& s, int64_t j, int64_t n) {
    const T i = s.gates[j], f = s.gates[n + j];
    const T g = s.gates[2 * n + j], o = s.gates[3 * n + j];
    const T t = CellTanh(s.cells[j]);
    const T dh = s.hidden_grad[j];
    const T dc = s.cell_grad[j] + dh * o * (T(1) - t * t);
    s.x_grad[j] = dc * g * i * (T(1) - i);
    s.x_grad[n + j] = dc * s.c_before[j] * f * (T(1) - f);
    s.x_grad[2 * n + j] = dc * i * (T(1) - g * g);
    s.x_grad[3 * n + j] = dh * t * o * (T(1) - o);
    s.cell_grad[j] = dc * f;
    s.hidden_grad[j] = 0;
  }
};

// Gates r, z, n; saved: r, z, n and the hidden part of n.
template <typename T>
struct GruForward : CellLoop<T, GruForward<T>> {
  static HOLDFAST_HD void Unit(const CellStep<T>& s, int64_t j, int64_t n) {
    const T r = CellSigmoid(s.x[j] + s.r[j]);
    const T z = CellSigmoid(s.x[n + j] + s.r[n + j]);
    const T hidden = s.r[2 * n + j] + s.bias[j];
    const T fresh = CellTanh(s.x[2 * n + j] + r * hidden);
    const T h = fresh + z * (s.h[j] - fresh);
    s.gates[j] = r;
    s.gates[n + j] = z;
    s.gates[2 * n + j] = fresh;
    s.gates[3 * n + j] = hidden;
    s.h[j] = h;
    s.out[j] = h;
  }
};

template <typename T>
struct GruBackward : CellLoop<T, GruBackward<T>> {
  static HOLDFAST_HD void Unit(const CellStep<T>& s, int64_t j, int64_t n) {
    const T r = s.gates[j], z = s.gates[n + j];
    const T fresh = s.gates[2 * n + j], hidden = s.gates[3 * n + j];
    const T dh = s.hidden_grad[j];
    const T dn = dh * (T(1) - z) * (T(1) - fresh * fresh);
    const T dz = dh * (s.h_before[j] - fresh) * z * (T(1) - z);
    const T dr = dn * hidden * r * (T(1) - r);
    s.x_grad[j] = dr;
    s.x_grad[n + j] = dz;
    s.x_grad[2 * n + j] = dn;
    s.r_grad[j] = dr;
    s.r_grad[n + j] = dz;
    s.r_grad[2 * n + j] = dn * r;
    s.hidden_grad[j] = dh * z;
  }
};

template <typename T, bool kRelu>
struct PlainForward : CellLoop<T, PlainForward<T, kRelu>> {
  static HOLDFAST_HD void Unit(const CellStep<T>& s, int64_t j, int64_t) {
    const T a = s.x[j] + s.r[j];
    const T h = kRelu ? (a < T(0) ? T(0) : a) : CellTanh(a);
    s.h[j] = h;
    s.out[j] = h;
  }
};

template <typename T, bool kRelu>
struct PlainBackward : CellLoop<T, PlainBackward<T, kRelu>> {
  static HOLDFAST_HD void Unit(const CellStep<T>& s, int64_t j, int64_t) {
    const T y = s.out[j], dh = s.hidden_grad[j];
    s.x_grad[j] = kRelu ? (y > T(0) ? dh : T(0)) : dh * (T(1) - y * y);
    s.hidden_grad[j] = 0;
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_RECURRENT_CELLS_H_
