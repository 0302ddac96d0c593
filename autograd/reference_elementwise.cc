// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// References: elementwise ops, casts, copies, dropout, reductions, softmax and
// nll_loss.
#include <cmath>
#include <limits>

#include "autograd/reference_ops.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

Unary UnaryOf(OpId op) {
  switch (op) {
    case OpId::neg:
      return [](double x) { return -x; };
    case OpId::abs:
      return [](double x) { return std::fabs(x); };
    case OpId::sign:
      return [](double x) { return double((x > 0) - (x < 0)); };
    case OpId::relu:
      return [](double x) { return x > 0 ? x : 0.0; };
    case OpId::exp:
      return [](double x) { return std::exp(x); };
    case OpId::expm1:
      return [](double x) { return std::expm1(x); };
    case OpId::log:
      return [](double x) { return std::log(x); };
    case OpId::log1p:
      return [](double x) { return std::log1p(x); };
    case OpId::sqrt:
      return [](double x) { return std::sqrt(x); };
    case OpId::rsqrt:
      return [](double x) { return 1 / std::sqrt(x); };
    case OpId::reciprocal:
      return [](double x) { return 1 / x; };
    case OpId::sin:
      return [](double x) { return std::sin(x); };
    case OpId::cos:
      return [](double x) { return std::cos(x); };
    case OpId::tanh:
      return [](double x) { return std::tanh(x); };
    case OpId::sigmoid:
      return [](double x) { return 1 / (1 + std::exp(-x)); };
    case OpId::erf:
      return [](double x) { return std::erf(x); };
    case OpId::floor:
      return [](double x) { return std::floor(x); };
    case OpId::ceil:
      return [](double x) { return std::ceil(x); };
    case OpId::round:
      return [](double x) { return std::nearbyint(x); };
    case OpId::to:
    case OpId::clone:
      return [](double x) { return x; };
    default:
      return nullptr;
  }
}

Binary BinaryOf(OpId op) {
  switch (op) {
    case OpId::add:
      return [](double a, double b) { return a + b; };
    case OpId::sub:
      return [](double a, double b) { return a - b; };
    case OpId::mul:
      return [](double a, double b) { return a * b; };
    case OpId::div:
      return [](double a, double b) { return a / b; };
    case OpId::floor_divide:
      return [](double a, double b) { return std::floor(a / b); };
    case OpId::remainder:
      return [](double a, double b) { return a - b * std::floor(a / b); };
    case OpId::pow:
      return [](double a, double b) { return std::pow(a, b); };
    case OpId::maximum:
      return [](double a, double b) { return a > b ? a : b; };
    case OpId::minimum:
      return [](double a, double b) { return a < b ? a : b; };
    case OpId::eq:
      return [](double a, double b) { return double(a == b); };
    case OpId::lt:
      return [](double a, double b) { return double(a < b); };
    case OpId::le:
      return [](double a, double b) { return double(a <= b); };
    case OpId::gt:
      return [](double a, double b) { return double(a > b); };
    case OpId::ge:
      return [](double a, double b) { return double(a >= b); };
    case OpId::logical_and:
      return [](double a, double b) { return double(a != 0 && b != 0); };
    case OpId::relu_backward:
      return [](double a, double b) { return b > 0 ? a : 0.0; };
    case OpId::copy:
      return [](double, double b) { return b; };
    default:
      return nullptr;
  }
}

double Clamp(const Attrs& attrs, double x) {
  const AttrValue& min = attrs.Get("min");
  const AttrValue& max = attrs.Get("max");
  if (!IsNone(min)) x = std::fmax(x, AttrAsDouble(min));
  if (!IsNone(max)) x = std::fmin(x, AttrAsDouble(max));
  return x;
}

// The slopes of functions that are not activations; of tanh and sigmoid from
// the value.
double Slope(const std::string& op, double x) {
  if (op == "square") return 2 * x;
  if (op == "abs") return (x > 0) - (x < 0);
  return op == "tanh" ? 1 - x * x : x * (1 - x);
}

// A draw that depends on the position only, so that differences in the input
// leave the mask alone.
bool Kept(size_t i) { return (i * 7 + 3) % 5 >= 2; }

// Where `index` into the input lands in the reduced output `shape`.
Dims Reduced(const Dims& index, uint64_t mask, bool keepdim) {
  Dims out;
  for (size_t d = 0; d < index.size(); ++d) {
    const bool reduced = ((mask >> d) & 1u) != 0;
    if (!reduced) out.push_back(index[d]);
    if (reduced && keepdim) out.push_back(0);
  }
  return out;
}

// Calls `f(start, stride, count)` for each line along `dim`.
template <typename F>
void ForEachLine(const Dims& shape, int64_t dim, F f) {
  if (shape.empty()) return f(0, 1, 1);
  if (dim < 0) dim += static_cast<int64_t>(shape.size());
  int64_t stride = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d) stride *= shape[d];
  const int64_t count = shape[dim];
  const int64_t outer = count > 0 ? NumElements(shape) / (count * stride) : 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < stride; ++i)
      f(o * count * stride + i, stride, count);
  }
}

}  // namespace

bool ComputeElementwise(const Attrs& attrs, const std::vector<Dense>& in,
                        std::vector<Dense>& out) {
  const OpId op = attrs.schema().id;
  Dense& y = out[0];
  if (const Unary f = UnaryOf(op)) {
    for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = f(in[0].v[i]);
    return true;
  }
  if (const Binary f = BinaryOf(op)) {
    ForEachIndex(y.shape,
                 [&](const Dims& i) { y.at(i) = f(in[0].at(i), in[1].at(i)); });
    return true;
  }
  switch (op) {
    case OpId::where:
      ForEachIndex(y.shape, [&](const Dims& i) {
        y.at(i) = in[0].at(i) != 0 ? in[1].at(i) : in[2].at(i);
      });
      return true;
    case OpId::clamp:
      for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = Clamp(attrs, in[0].v[i]);
      return true;
    case OpId::activation_backward:
      for (size_t i = 0; i < y.v.size(); ++i) {
        y.v[i] = in[0].v[i] * Slope(attrs.Str("op"), in[1].v[i]);
      }
      return true;
    case OpId::full:
      for (double& x : y.v) x = AttrAsDouble(attrs.Get("fill_value"));
      return true;
    case OpId::arange:
      for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = static_cast<double>(i);
      return true;
    case OpId::fill:
      for (double& x : y.v) x = AttrAsDouble(attrs.Get("value"));
      return true;
    case OpId::dropout:
      for (size_t i = 0; i < y.v.size(); ++i) {
        out[1].v[i] = Kept(i);
        y.v[i] = Kept(i) ? in[0].v[i] / (1 - attrs.Float("p")) : 0.0;
      }
      return true;
    default:
      return false;
  }
}

bool ComputeReduction(const Attrs& attrs, const std::vector<Dense>& in,
                      std::vector<Dense>& out) {
  const OpId op = attrs.schema().id;
  if (op == OpId::cumsum) {
    ForEachLine(in[0].shape, attrs.Int("dim"),
                [&](int64_t start, int64_t stride, int64_t count) {
                  double sum = 0;
                  for (int64_t i = 0; i < count; ++i) {
                    sum += in[0].v[start + i * stride];
                    out[0].v[start + i * stride] = sum;
                  }
                });
    return true;
  }
  const bool sums = op == OpId::sum || op == OpId::nansum || op == OpId::mean;
  if (!sums && op != OpId::amax && op != OpId::amin) return false;
  const TensorSpec spec = ContiguousSpec(DType::kFloat64, in[0].shape);
  const TensorSpec* specs[] = {&spec};
  uint64_t mask = 0;
  ReducedDims(attrs, specs, &mask).IgnoreError();
  const double sign = op == OpId::amin ? -1 : 1;
  if (!sums) {
    for (double& x : out[0].v) {
      x = -sign * std::numeric_limits<double>::infinity();
    }
  }
  ForEachIndex(in[0].shape, [&](const Dims& i) {
    double& y = out[0].at(Reduced(i, mask, attrs.Bool("keepdim")));
    const double x = in[0].at(i);
    if (sums) {
      y += op == OpId::nansum && x != x ? 0 : x;
    } else if (sign * x > sign * y) {
      y = x;
    }
  });
  if (op == OpId::mean) {
    for (double& y : out[0].v) y *= double(out[0].v.size()) / in[0].v.size();
  }
  return true;
}

bool ComputeSoftmax(const Attrs& attrs, const std::vector<Dense>& in,
                    std::vector<Dense>& out) {
  const OpId op = attrs.schema().id;
  std::vector<double>& y = out[0].v;
  const std::vector<double>& x = in[0].v;
  if (op == OpId::nll_loss || op == OpId::nll_loss_backward) {
    const bool forward = op == OpId::nll_loss;
    const std::string& reduction = attrs.Str("reduction");
    const bool each = reduction == "none";
    const int64_t classes = (forward ? in[0] : out[0]).shape[1];
    const int64_t rows = static_cast<int64_t>(in[1].v.size());
    const auto weight = [&](int64_t i) {
      const int64_t t = static_cast<int64_t>(in[1].v[i]);
      if (t == attrs.Int("ignore_index")) return 0.0;
      return in[2].present ? in[2].v[t] : 1.0;
    };
    double total = 0;
    for (int64_t i = 0; i < rows; ++i) total += weight(i);
    const double scale = reduction == "mean" ? 1 / total : 1.0;
    for (int64_t i = 0; i < rows; ++i) {
      const double w = weight(i) * scale;
      if (w == 0) continue;
      const int64_t place = i * classes + static_cast<int64_t>(in[1].v[i]);
      if (forward) {
        y[each ? i : 0] -= w * x[place];
      } else {
        y[place] = -w * x[each ? i : 0];
      }
    }
    if (forward) out[1].v[0] = total;
    return true;
  }
  if (op != OpId::softmax && op != OpId::log_softmax &&
      op != OpId::softmax_backward && op != OpId::log_softmax_backward) {
    return false;
  }
  ForEachLine(out[0].shape, attrs.Int("dim"),
              [&](int64_t start, int64_t stride, int64_t count) {
                double sum = 0;
                for (int64_t i = 0; i < count; ++i) {
                  const int64_t p = start + i * stride;
                  if (op == OpId::softmax_backward) {
                    sum += x[p] * in[1].v[p];
                  } else {
                    sum += op == OpId::log_softmax_backward ? x[p]
                                                            : std::exp(x[p]);
                  }
                }
                for (int64_t i = 0; i < count; ++i) {
                  const int64_t p = start + i * stride;
                  if (op == OpId::softmax) {
                    y[p] = std::exp(x[p]) / sum;
                  } else if (op == OpId::log_softmax) {
                    y[p] = x[p] - std::log(sum);
                  } else if (op == OpId::softmax_backward) {
                    y[p] = in[1].v[p] * (x[p] - sum);
                  } else {
                    y[p] = x[p] - std::exp(in[1].v[p]) * sum;
                  }
                }
              });
  return true;
}

}  // namespace holdfast
