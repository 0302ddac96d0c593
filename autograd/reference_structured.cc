// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// References: joining and indexing, matrix products, convolution, pooling.
#include <limits>

#include "autograd/reference_ops.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {

double& Dense::at(const Dims& index) {
  const size_t lead = index.size() - shape.size();
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    offset = offset * shape[d] + (shape[d] == 1 ? 0 : index[lead + d]);
  }
  return v[offset];
}

void ForEachIndex(const Dims& shape,
                  const std::function<void(const Dims&)>& f) {
  const int64_t n = NumElements(shape);
  Dims index(shape.size(), 0);
  for (int64_t count = 0; count < n; ++count) {
    f(index);
    for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

bool ComputeReference(const Attrs& attrs, const std::vector<Dense>& in,
                      std::vector<Dense>& out) {
  return ComputeElementwise(attrs, in, out) ||
         ComputeReduction(attrs, in, out) || ComputeOrdered(attrs, in, out) ||
         ComputeIndexing(attrs, in, out) || ComputeProduct(attrs, in, out) ||
         ComputePooling(attrs, in, out) || ComputeSoftmax(attrs, in, out);
}

namespace {

int64_t DimOf(const Attrs& attrs, int rank) {
  const int64_t dim = attrs.Int("dim");
  return dim < 0 ? dim + rank : dim;
}

// conv2d in the three roles of its tensors: visits every (input, weight,
// output) triple of offsets that meet.
template <typename F>
void ForEachTap(const Attrs& attrs, const Dims& x, const Dims& w, const Dims& y,
                F f) {
  const Dims& stride = attrs.Ints("stride");
  const Dims& padding = attrs.Ints("padding");
  const Dims& dilation = attrs.Ints("dilation");
  const int64_t groups = attrs.Int("groups");
  const int64_t per_group = y[1] / groups;
  ForEachIndex(y, [&](const Dims& o) {
    const int64_t group = o[1] / per_group;
    for (int64_t c = 0; c < w[1]; ++c) {
      for (int64_t kh = 0; kh < w[2]; ++kh) {
        for (int64_t kw = 0; kw < w[3]; ++kw) {
          const int64_t h = o[2] * stride[0] - padding[0] + kh * dilation[0];
          const int64_t v = o[3] * stride[1] - padding[1] + kw * dilation[1];
          if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
          f(Dims{o[0], group * w[1] + c, h, v}, Dims{o[1], c, kh, kw}, o);
        }
      }
    }
  });
}

// The positions of x in the window of output element `o`.
template <typename F>
void ForEachInWindow(const Attrs& attrs, const Dims& stride,
                     const Dims& dilation, const Dims& x, const Dims& o, F f) {
  const Dims& kernel = attrs.Ints("kernel_size");
  const Dims& padding = attrs.Ints("padding");
  for (int64_t kh = 0; kh < kernel[0]; ++kh) {
    for (int64_t kw = 0; kw < kernel[1]; ++kw) {
      const int64_t h = o[2] * stride[0] - padding[0] + kh * dilation[0];
      const int64_t v = o[3] * stride[1] - padding[1] + kw * dilation[1];
      if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
      f(Dims{o[0], o[1], h, v});
    }
  }
}

// Divisor of an average: the window without what lies beyond the padding.
double WindowSize(const Attrs& attrs, const Dims& stride, const Dims& x,
                  const Dims& o) {
  double size = 1;
  for (int d = 0; d < 2; ++d) {
    const int64_t padding = attrs.Ints("padding")[d];
    int64_t begin = o[2 + d] * stride[d] - padding;
    int64_t end =
        std::min(begin + attrs.Ints("kernel_size")[d], x[2 + d] + padding);
    if (!attrs.Bool("count_include_pad")) {
      begin = std::max<int64_t>(begin, 0);
      end = std::min(end, x[2 + d]);
    }
    size *= double(end - begin);
  }
  return size;
}

}  // namespace

bool ComputeIndexing(const Attrs& attrs, const std::vector<Dense>& in,
                     std::vector<Dense>& out) {
  Dense& y = out[0];
  const auto positive = [&](const char* name, int rank) {
    const int64_t value = attrs.Int(name);
    return value < 0 ? value + rank : value;
  };
  switch (attrs.schema().id) {
    case OpId::cat: {
      const int64_t dim = DimOf(attrs, y.rank());
      int64_t start = 0;
      for (const Dense& part : in) {
        if (part.rank() != y.rank()) continue;
        ForEachIndex(part.shape, [&](Dims i) {
          const double x = part.at(i);
          i[dim] += start;
          y.at(i) = x;
        });
        start += part.shape[dim];
      }
      return true;
    }
    case OpId::gather: {
      const int64_t dim = DimOf(attrs, y.rank());
      ForEachIndex(y.shape, [&](Dims i) {
        double& to = y.at(i);
        i[dim] = static_cast<int64_t>(in[1].at(i));
        to = in[0].at(i);
      });
      return true;
    }
    case OpId::scatter:
    case OpId::scatter_add: {
      const bool add = attrs.schema().id == OpId::scatter_add;
      const int64_t dim = DimOf(attrs, y.rank());
      y.v = in[0].v;
      ForEachIndex(in[1].shape, [&](Dims i) {
        const double x = in[2].at(i);
        i[dim] = static_cast<int64_t>(in[1].at(i));
        y.at(i) = add ? y.at(i) + x : x;
      });
      return true;
    }
    case OpId::as_strided_scatter: {
      const Dims& strides = attrs.Ints("stride");
      y.v = in[0].v;
      size_t next = 0;
      ForEachIndex(in[1].shape, [&](const Dims& i) {
        int64_t place = attrs.Int("storage_offset");
        for (size_t d = 0; d < i.size(); ++d) place += i[d] * strides[d];
        y.v[place] = in[1].v[next++];
      });
      return true;
    }
    case OpId::index_select: {
      const int64_t dim = DimOf(attrs, y.rank());
      ForEachIndex(y.shape, [&](Dims i) {
        double& to = y.at(i);
        i[dim] = static_cast<int64_t>(in[1].v[i[dim]]);
        to = in[0].at(i);
      });
      return true;
    }
    case OpId::index_add: {
      const int64_t dim = DimOf(attrs, y.rank());
      y.v = in[0].v;
      ForEachIndex(in[2].shape, [&](Dims i) {
        const double x = in[2].at(i);
        i[dim] = static_cast<int64_t>(in[1].v[i[dim]]);
        y.at(i) += x;
      });
      return true;
    }
    case OpId::flip:
      ForEachIndex(y.shape, [&](Dims i) {
        double& to = y.at(i);
        for (int64_t dim : attrs.Ints("dims")) {
          const int64_t d = dim < 0 ? dim + y.rank() : dim;
          i[d] = y.shape[d] - 1 - i[d];
        }
        to = in[0].at(i);
      });
      return true;
    case OpId::tril:
    case OpId::triu: {
      const bool lower = attrs.schema().id == OpId::tril;
      const int64_t diagonal = attrs.Int("diagonal");
      ForEachIndex(y.shape, [&](const Dims& i) {
        const int64_t above = i[y.rank() - 1] - i[y.rank() - 2];
        const bool kept = lower ? above <= diagonal : above >= diagonal;
        y.at(i) = kept ? in[0].at(i) : 0.0;
      });
      return true;
    }
    case OpId::constant_pad: {
      const Dims& pad = attrs.Ints("pad");
      ForEachIndex(y.shape, [&](Dims i) {
        double& to = y.at(i);
        bool inside = true;
        for (size_t p = 0; 2 * p < pad.size(); ++p) {
          const int d = y.rank() - 1 - static_cast<int>(p);
          i[d] -= pad[2 * p];
          inside &= i[d] >= 0 && i[d] < in[0].shape[d];
        }
        to = inside ? in[0].at(i) : AttrAsDouble(attrs.Get("value"));
      });
      return true;
    }
    case OpId::slice_backward: {
      const int64_t dim = DimOf(attrs, y.rank());
      ForEachIndex(in[0].shape, [&](Dims i) {
        const double x = in[0].at(i);
        i[dim] = attrs.Int("start") + i[dim] * attrs.Int("step");
        y.at(i) = x;
      });
      return true;
    }
    case OpId::select_backward: {
      const int64_t dim = DimOf(attrs, y.rank());
      ForEachIndex(in[0].shape, [&](Dims i) {
        const double x = in[0].at(i);
        i.insert(i.begin() + dim,
                 positive("index", static_cast<int>(y.shape[dim])));
        y.at(i) = x;
      });
      return true;
    }
    default:
      return false;
  }
}

bool ComputeProduct(const Attrs& attrs, const std::vector<Dense>& in,
                    std::vector<Dense>& out) {
  Dense& y = out[0];
  switch (attrs.schema().id) {
    case OpId::matmul: {
      // As matrices: a [.., n, k], b [.., k, m], y [.., n, m].
      Dense a = in[0], b = in[1];
      Dims shape = y.shape;
      if (in[0].rank() == 1) {
        a.shape.insert(a.shape.begin(), 1);
        shape.insert(shape.end() - (in[1].rank() > 1 ? 1 : 0), 1);
      }
      if (in[1].rank() == 1) {
        b.shape.push_back(1);
        shape.push_back(1);
      }
      Dense result(shape);
      ForEachIndex(shape, [&](const Dims& i) {
        Dims at_a = i, at_b = i;
        for (int64_t k = 0; k < a.shape.back(); ++k) {
          at_a[i.size() - 1] = at_b[i.size() - 2] = k;
          result.at(i) += a.at(at_a) * b.at(at_b);
        }
      });
      y.v = result.v;
      return true;
    }
    case OpId::linear:
      ForEachIndex(y.shape, [&](const Dims& i) {
        Dims at = i;
        double sum = in[2].present ? in[2].v[i.back()] : 0.0;
        for (int64_t k = 0; k < in[1].shape[1]; ++k) {
          at.back() = k;
          sum += in[0].at(at) * in[1].at({i.back(), k});
        }
        y.at(i) = sum;
      });
      return true;
    case OpId::conv2d:
      ForEachTap(attrs, in[0].shape, in[1].shape, y.shape,
                 [&](const Dims& x, const Dims& w, const Dims& o) {
                   y.at(o) += in[0].at(x) * in[1].at(w);
                 });
      if (in[2].present) {
        ForEachIndex(y.shape, [&](const Dims& o) { y.at(o) += in[2].v[o[1]]; });
      }
      return true;
    case OpId::conv2d_backward_input:
      ForEachTap(attrs, y.shape, in[1].shape, in[0].shape,
                 [&](const Dims& x, const Dims& w, const Dims& o) {
                   y.at(x) += in[0].at(o) * in[1].at(w);
                 });
      return true;
    case OpId::conv2d_backward_weight:
      ForEachTap(attrs, in[1].shape, y.shape, in[0].shape,
                 [&](const Dims& x, const Dims& w, const Dims& o) {
                   y.at(w) += in[0].at(o) * in[1].at(x);
                 });
      return true;
    default:
      return false;
  }
}

bool ComputePooling(const Attrs& attrs, const std::vector<Dense>& in,
                    std::vector<Dense>& out) {
  Dense& y = out[0];
  switch (attrs.schema().id) {
    case OpId::max_pool2d: {
      const Dims stride = attrs.None("stride") ? attrs.Ints("kernel_size")
                                               : attrs.Ints("stride");
      ForEachIndex(y.shape, [&](const Dims& o) {
        y.at(o) = -std::numeric_limits<double>::infinity();
        ForEachInWindow(attrs, stride, attrs.Ints("dilation"), in[0].shape, o,
                        [&](const Dims& x) {
                          if (in[0].at(x) <= y.at(o)) return;
                          y.at(o) = in[0].at(x);
                          out[1].at(o) = double(x[2] * in[0].shape[3] + x[3]);
                        });
      });
      return true;
    }
    case OpId::max_pool2d_gather:
    case OpId::max_pool2d_backward: {
      const bool gather = attrs.schema().id == OpId::max_pool2d_gather;
      const int64_t width = (gather ? in[0] : y).shape[3];
      ForEachIndex(in[1].shape, [&](const Dims& o) {
        const int64_t place = static_cast<int64_t>(in[1].at(o));
        const Dims x{o[0], o[1], place / width, place % width};
        if (gather) {
          y.at(o) = in[0].at(x);
        } else {
          y.at(x) += in[0].at(o);
        }
      });
      return true;
    }
    case OpId::avg_pool2d:
    case OpId::avg_pool2d_backward: {
      const bool forward = attrs.schema().id == OpId::avg_pool2d;
      const Dims stride = attrs.None("stride") ? attrs.Ints("kernel_size")
                                               : attrs.Ints("stride");
      const Dims& x_shape = (forward ? in[0] : y).shape;
      ForEachIndex((forward ? y : in[0]).shape, [&](const Dims& o) {
        const double size = WindowSize(attrs, stride, x_shape, o);
        ForEachInWindow(attrs, stride, {1, 1}, x_shape, o, [&](const Dims& x) {
          if (forward) {
            y.at(o) += in[0].at(x) / size;
          } else {
            y.at(x) += in[0].at(o) / size;
          }
        });
      });
      return true;
    }
    default:
      return false;
  }
}

}  // namespace holdfast
