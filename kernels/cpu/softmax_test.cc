// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and their gradients, and exp itself.
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/op_testing.h"
#include "kernels/fast_exp.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Calls fn with the positions of each slice along `dim`.
template <typename F>
void ForEachSlice(const Dims& shape, int64_t dim, F fn) {
  for (int64_t i = 0; i < NumElements(shape); ++i) {
    Dims index = Unravel(i, shape);
    if (index[dim] != 0) continue;
    std::vector<int64_t> slice;
    for (; index[dim] < shape[dim]; ++index[dim]) {
      slice.push_back(Ravel(index, shape));
    }
    fn(slice);
  }
}

TEST(SoftmaxTest, EveryLayoutAndDimension) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double tolerance = dtype == DType::kFloat32 ? 1e-6 : 1e-14;
    for (const Dims& size :
         {Dims{3, 5, 10}, Dims{4, 70, 33}, Dims{2, 3, 130}, Dims{5, 1, 1},
          Dims{3, 50, 10}, Dims{2, 64, 32}, Dims{7, 13, 1}}) {
      for (const TestTensor& x : Layouts(dtype, size[0], size[1], size[2])) {
        for (int64_t dim : {0, 1, 2}) {
          const AttrList attrs = {{"dim", AttrValue(dim)}};
          const TestTensor grad = Random(dtype, size, 7);
          std::vector<double> y(x.numel()), log_y(x.numel());
          std::vector<double> dx(x.numel()), log_dx(x.numel());
          ForEachSlice(size, dim, [&](const std::vector<int64_t>& slice) {
            double max = -kInf, sum = 0, dot = 0, total = 0;
            for (int64_t i : slice) max = std::max(max, x.Get(i));
            for (int64_t i : slice) sum += std::exp(x.Get(i) - max);
            for (int64_t i : slice) {
              log_y[i] = x.Get(i) - max - std::log(sum);
              y[i] = std::exp(log_y[i]);
              dot += y[i] * grad.Get(i);
              total += grad.Get(i);
            }
            for (int64_t i : slice) {
              dx[i] = y[i] * (grad.Get(i) - dot);
              log_dx[i] = grad.Get(i) - y[i] * total;
            }
          });
          const std::string what = absl::StrCat(x.spec().ToString(), " ", dim);
          const TestTensor out = Op(OpId::softmax, attrs, {x}, 2);
          const TestTensor log_out = Op(OpId::log_softmax, attrs, {x}, 2);
          ExpectNear(out, y, tolerance, what);
          ExpectNear(log_out, log_y, tolerance, what);
          ExpectNear(Op(OpId::softmax_backward, attrs, {grad, out}, 2), dx,
                     tolerance * 4, what);
          ExpectNear(Op(OpId::log_softmax_backward, attrs, {grad, log_out}, 2),
                     log_dx, tolerance * 20, what);
        }
      }
    }
  }
}

TEST(SoftmaxTest, StableForLargeInputs) {
  for (int64_t n : {4, 100}) {
    for (double offset : {1e4, -1e4}) {
      std::vector<double> values(n, offset - 1000);
      values[1] = offset;
      values[2] = offset;
      const TestTensor x(DType::kFloat32, {1, n}, values);
      const AttrList attrs = {{"dim", AttrValue(int64_t{1})}};
      const TestTensor y = Op(OpId::softmax, attrs, {x});
      EXPECT_FLOAT_EQ(y.Get(1), 0.5);
      EXPECT_EQ(y.Get(0), 0);
      EXPECT_NEAR(Op(OpId::log_softmax, attrs, {x}).Get(0), -1000 - std::log(2),
                  1e-3);
    }
  }
}

TEST(SoftmaxTest, InfinitiesAndNan) {
  for (int64_t n : {3, 40}) {
    for (bool rows : {true, false}) {
      const AttrList attrs = {{"dim", AttrValue(int64_t{rows ? 1 : 0})}};
      const Dims shape = rows ? Dims{2, n} : Dims{n, 2};
      const auto set = [&](TestTensor& t, int64_t slice, int64_t i, double v) {
        t.Set(rows ? slice * n + i : i * 2 + slice, v);
      };
      const auto get = [&](const TestTensor& t, int64_t slice, int64_t i) {
        return t.Get(rows ? slice * n + i : i * 2 + slice);
      };
      TestTensor x(DType::kFloat32, shape, std::vector<double>(2 * n, 0));
      set(x, 0, 1, -kInf);
      set(x, 1, 2, kNan);
      const TestTensor y = Op(OpId::softmax, attrs, {x});
      const TestTensor log_y = Op(OpId::log_softmax, attrs, {x});
      EXPECT_EQ(get(y, 0, 1), 0);
      EXPECT_NEAR(get(y, 0, 0), 1.0 / (n - 1), 1e-6);
      EXPECT_EQ(get(log_y, 0, 1), -kInf);
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_TRUE(std::isnan(get(y, 1, i)));
        EXPECT_TRUE(std::isnan(get(log_y, 1, i)));
      }
      // Nothing but -infinity: undefined, as in PyTorch.
      const TestTensor none(DType::kFloat32, shape,
                            std::vector<double>(2 * n, -kInf));
      EXPECT_TRUE(std::isnan(Op(OpId::softmax, attrs, {none}).Get(0)));
    }
  }
}

TEST(SoftmaxTest, DtypeOfTheComputation) {
  const TestTensor x = Random(DType::kInt32, {4, 6});
  const TestTensor x64(DType::kFloat64, {4, 6}, x.Values());
  ExpectEqual(
      Op(OpId::softmax,
         {{"dim", AttrValue(int64_t{1})},
          {"dtype", AttrValue(DType::kFloat64)}},
         {x}),
      Op(OpId::softmax, {{"dim", AttrValue(int64_t{1})}}, {x64}).Values());
}

TEST(SoftmaxTest, RankZeroAndEmpty) {
  const AttrList attrs = {{"dim", AttrValue(int64_t{0})}};
  ExpectEqual(Op(OpId::softmax, attrs, {TestTensor(DType::kFloat32, {}, {3})}),
              {1});
  EXPECT_EQ(
      Op(OpId::softmax, attrs, {TestTensor(DType::kFloat32, {0, 3})}).numel(),
      0);
}

TEST(SoftmaxTest, ResultsDoNotDependOnThreads) {
  for (int64_t dim : {0, 1, 2}) {
    const TestTensor x = Random(DType::kFloat32, {40, 50, 60});
    const AttrList attrs = {{"dim", AttrValue(dim)}};
    const TestTensor one = Op(OpId::softmax, attrs, {x}, 1);
    for (int threads : {2, 3}) {
      ExpectSameBits(one, Op(OpId::softmax, attrs, {x}, threads));
    }
  }
}

TEST(FastExpTest, AgreesWithTheLibrary) {
  for (double x = -110; x < 95; x += 0.0137) {
    const float f = static_cast<float>(x);
    const double want = std::exp(static_cast<double>(f));
    if (want > std::numeric_limits<float>::max()) {
      EXPECT_EQ(FastExp(f), std::numeric_limits<float>::infinity()) << f;
    } else {
      EXPECT_NEAR(FastExp(f), want, want * 2.5e-7 + 1.5e-45) << f;
    }
  }
  for (double x = -750; x < 709; x += 0.137) {
    EXPECT_NEAR(FastExp(x), std::exp(x), std::exp(x) * 5e-16 + 5e-324) << x;
  }
  EXPECT_EQ(FastExp(-std::numeric_limits<float>::infinity()), 0);
  EXPECT_EQ(FastExp(-kInf), 0);
  EXPECT_EQ(FastExp(kInf), kInf);
  EXPECT_TRUE(std::isnan(FastExp(kNan)));
  EXPECT_TRUE(std::isnan(FastExp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(FastExp(0.0f), 1);
}

}  // namespace
}  // namespace holdfast::cpu
