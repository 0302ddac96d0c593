// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// References: scans, sorting and selecting, products, moments, norms; each a
// line of elements at a time.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/reference_ops.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Calls f(elements, positions): every line of `shape` along the dimensions of
// `mask`, as offsets.
template <typename F>
void ForEachGroup(const Dims& shape, uint64_t mask, F f) {
  Dims outer = shape, inner = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    ((mask >> d & 1) != 0 ? outer : inner)[d] = 1;
  }
  const Dims strides = ContiguousStrides(shape);
  int64_t number = 0;
  ForEachIndex(outer, [&](const Dims& o) {
    std::vector<int64_t> at;
    ForEachIndex(inner, [&](const Dims& i) {
      int64_t offset = 0;
      for (size_t d = 0; d < shape.size(); ++d) {
        offset += (o[d] + i[d]) * strides[d];
      }
      at.push_back(offset);
    });
    f(number++, at);
  });
}

uint64_t MaskOf(const Attrs& attrs, const Dims& shape) {
  const AttrValue& dim = attrs.Get("dim");
  if (IsNone(dim)) return ~uint64_t{0};
  const int rank = static_cast<int>(shape.size());
  const auto bit = [&](int64_t d) {
    return uint64_t{1} << (d < 0 ? d + std::max(rank, 1) : d);
  };
  if (const int64_t* d = std::get_if<int64_t>(&dim)) return bit(*d);
  uint64_t mask = 0;
  for (int64_t d : std::get<Dims>(dim)) mask |= bit(d);
  return mask;
}

void ScanLine(const Attrs& attrs, const std::vector<Dense>& in,
              const std::vector<int64_t>& at, std::vector<Dense>& out) {
  const OpId op = attrs.schema().id;
  const size_t n = at.size();
  double state = op == OpId::cumprod ? 1 : 0;
  int64_t found = 0;
  for (size_t i = 0; i < n; ++i) {
    const bool back = op == OpId::linear_scan && attrs.Bool("reverse");
    const int64_t here = at[back ? n - 1 - i : i];
    const double x = in[0].v[here];
    switch (op) {
      case OpId::cumprod:
        state *= x;
        break;
      case OpId::logcumsumexp:
        state = i == 0 ? x : std::log(std::exp(state) + std::exp(x));
        break;
      case OpId::linear_scan:
        state = x + (i == 0 ? 0 : in[1].v[here] * state);
        break;
      default: {  // cummax, cummin
        const bool better = op == OpId::cummax ? x >= state : x <= state;
        if (i == 0 || better) {
          state = x;
          found = static_cast<int64_t>(i);
        }
        out[1].v[here] = static_cast<double>(found);
      }
    }
    out[0].v[here] = state;
  }
}

void ReduceLine(const Attrs& attrs, const std::vector<double>& x, int64_t line,
                std::vector<Dense>& out) {
  const double n = static_cast<double>(x.size());
  double& y = out[0].v[line];
  if (attrs.schema().id == OpId::prod) {
    y = 1;
    for (double a : x) y *= a;
  } else if (attrs.schema().id == OpId::var_mean) {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
    for (double a : x) y += (a - mean) * (a - mean);
    y /= n - attrs.Float("correction");
    out[1].v[line] = mean;
  } else {  // vector_norm
    const double ord = attrs.Float("ord");
    if (ord == -std::numeric_limits<double>::infinity()) y = -ord;
    for (double a : x) {
      a = std::abs(a);
      if (std::isinf(ord)) {
        y = ord > 0 ? std::max(y, a) : std::min(y, a);
      } else {
        y += ord == 0 ? a != 0 : std::pow(a, ord);
      }
    }
    if (ord == 2) y = std::sqrt(y);
  }
}

}  // namespace

bool ComputeOrdered(const Attrs& attrs, const std::vector<Dense>& in,
                    std::vector<Dense>& out) {
  const OpId op = attrs.schema().id;
  switch (op) {
    case OpId::cumprod:
    case OpId::logcumsumexp:
    case OpId::linear_scan:
    case OpId::cummax:
    case OpId::cummin:
      ForEachGroup(in[0].shape, MaskOf(attrs, in[0].shape),
                   [&](int64_t, const std::vector<int64_t>& at) {
                     ScanLine(attrs, in, at, out);
                   });
      return true;
    case OpId::prod:
    case OpId::var_mean:
    case OpId::vector_norm:
      ForEachGroup(in[0].shape, MaskOf(attrs, in[0].shape),
                   [&](int64_t line, const std::vector<int64_t>& at) {
                     std::vector<double> x;
                     for (int64_t i : at) x.push_back(in[0].v[i]);
                     ReduceLine(attrs, x, line, out);
                   });
      return true;
    case OpId::sort:
    case OpId::topk:
    case OpId::kthvalue:
    case OpId::median:
    case OpId::mode:
      break;
    default:
      return false;
  }
  const bool down = (op == OpId::sort && attrs.Bool("descending")) ||
                    (op == OpId::topk && attrs.Bool("largest"));
  const uint64_t mask = MaskOf(attrs, in[0].shape);
  // The places of the results, line by line.
  std::vector<std::vector<int64_t>> places;
  if (op == OpId::sort || op == OpId::topk) {
    ForEachGroup(
        out[0].shape, mask,
        [&](int64_t, const std::vector<int64_t>& at) { places.push_back(at); });
  }
  ForEachGroup(
      in[0].shape, mask, [&](int64_t line, const std::vector<int64_t>& at) {
        std::vector<int64_t> order(at.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          const double x = in[0].v[at[a]], y = in[0].v[at[b]];
          return down ? x > y : x < y;
        });
        const auto write = [&](int64_t to, int64_t rank) {
          out[0].v[to] = in[0].v[at[order[rank]]];
          out[1].v[to] = static_cast<double>(order[rank]);
        };
        if (op == OpId::kthvalue) {
          write(line, attrs.Int("k") - 1);
        } else if (op == OpId::median) {
          write(line, (static_cast<int64_t>(at.size()) - 1) / 2);
        } else if (op == OpId::mode) {
          // The cases have no equal elements: the smallest is as frequent.
          write(line, 0);
        } else {
          for (size_t i = 0; i < places[line].size(); ++i) {
            write(places[line][i], static_cast<int64_t>(i));
          }
        }
      });
  return true;
}

}  // namespace holdfast
