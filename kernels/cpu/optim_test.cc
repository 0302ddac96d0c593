// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
// Optimizer steps against the formulas of torch.optim in double.
#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/test_context.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

// Parameters of several sizes; the second is transposed, the third empty.
std::vector<TestTensor> MakeList(DType dtype, int seed, bool strided) {
  std::vector<TestTensor> list = {
      TestTensor(dtype, {7}),
      strided ? TestTensor(dtype, {50, 30}).Transpose(0, 1)
              : TestTensor(dtype, {30, 50}),
      TestTensor(dtype, {0, 4}), TestTensor(dtype, {})};
  for (const TestTensor& t : list) {
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.Set(i, std::sin(static_cast<double>(i * 37 + seed * 11)));
    }
  }
  return list;
}

std::vector<std::vector<double>> ValuesOf(const std::vector<TestTensor>& list) {
  std::vector<std::vector<double>> values;
  for (const TestTensor& t : list) values.push_back(t.Values());
  return values;
}

void ExpectClose(const std::vector<TestTensor>& got,
                 const std::vector<std::vector<double>>& want, DType dtype) {
  const double tolerance = dtype == DType::kFloat32 ? 1e-5 : 1e-13;
  for (size_t t = 0; t < got.size(); ++t) {
    for (int64_t i = 0; i < got[t].numel(); ++i) {
      ASSERT_NEAR(got[t].Get(i), want[t][i],
                  tolerance * (1 + std::fabs(want[t][i])))
          << t << " " << i;
    }
  }
}

std::vector<TestTensor> Concat(
    std::initializer_list<std::vector<TestTensor>> lists) {
  std::vector<TestTensor> all;
  for (const auto& list : lists)
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

struct SgdCase {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
};

class SgdTest : public testing::TestWithParam<SgdCase> {};

TEST_P(SgdTest, ThreeSteps) {
  const SgdCase& c = GetParam();
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (bool strided : {false, true}) {
      const auto params = MakeList(dtype, 1, strided);
      const auto buffers = MakeList(dtype, 9, !strided);
      auto p = ValuesOf(params), b = ValuesOf(buffers);
      for (int step = 0; step < 3; ++step) {
        const auto grads = MakeList(dtype, 20 + step, step == 1);
        const auto before = ValuesOf(grads);
        for (size_t t = 0; t < p.size(); ++t) {
          for (size_t i = 0; i < p[t].size(); ++i) {
            double g = (c.maximize ? -1 : 1) * before[t][i];
            g += c.weight_decay * p[t][i];
            if (c.momentum != 0) {
              b[t][i] =
                  step == 0 ? g : c.momentum * b[t][i] + (1 - c.dampening) * g;
              g = c.nesterov ? g + c.momentum * b[t][i] : b[t][i];
            }
            p[t][i] -= c.lr * g;
          }
        }
        Attrs attrs(&GetOp(OpId::sgd));
        attrs.Set("lr", AttrValue(c.lr));
        attrs.Set("momentum", AttrValue(c.momentum));
        attrs.Set("dampening", AttrValue(c.dampening));
        attrs.Set("weight_decay", AttrValue(c.weight_decay));
        attrs.Set("nesterov", AttrValue(c.nesterov));
        attrs.Set("maximize", AttrValue(c.maximize));
        attrs.Set("first_step", AttrValue(step == 0));
        TestContext context;
        const absl::Status status = RunKernel(
            &Cpu_sgd, context, attrs,
            Concat({params, grads, c.momentum != 0 ? buffers : grads}), {});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(ValuesOf(grads), before);
      }
      ExpectClose(params, p, dtype);
      ExpectClose(buffers, b, dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, SgdTest,
    testing::Values(SgdCase{0.1, 0, 0, 0, false, false},
                    SgdCase{0.1, 0, 0, 0.01, false, true},
                    SgdCase{0.1, 0.9, 0, 0, false, false},
                    SgdCase{0.1, 0.9, 0.5, 0.01, false, false},
                    SgdCase{0.1, 0.9, 0, 0.01, true, true}));

struct AdamCase {
  double weight_decay;
  bool decoupled, maximize;
};

class AdamTest : public testing::TestWithParam<AdamCase> {};

TEST_P(AdamTest, ThreeSteps) {
  const AdamCase& c = GetParam();
  const double lr = 0.01, beta1 = 0.9, beta2 = 0.99, eps = 1e-6;
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (bool strided : {false, true}) {
      const auto params = MakeList(dtype, 1, strided);
      const auto means = MakeList(dtype, 2, !strided);
      const auto squares = MakeList(dtype, 3, strided);
      for (const auto* list : {&means, &squares}) {
        for (const TestTensor& t : *list) {
          for (int64_t i = 0; i < t.numel(); ++i) t.Set(i, 0);
        }
      }
      auto p = ValuesOf(params), m = ValuesOf(means), v = ValuesOf(squares);
      for (int step = 1; step <= 3; ++step) {
        const auto grads = MakeList(dtype, 20 + step, step == 2);
        for (size_t t = 0; t < p.size(); ++t) {
          for (size_t i = 0; i < p[t].size(); ++i) {
            double g = (c.maximize ? -1 : 1) * grads[t].Get(i);
            if (c.decoupled) {
              p[t][i] *= 1 - lr * c.weight_decay;
            } else {
              g += c.weight_decay * p[t][i];
            }
            m[t][i] = beta1 * m[t][i] + (1 - beta1) * g;
            v[t][i] = beta2 * v[t][i] + (1 - beta2) * g * g;
            const double m_hat = m[t][i] / (1 - std::pow(beta1, step));
            const double v_hat = v[t][i] / (1 - std::pow(beta2, step));
            p[t][i] -= lr * m_hat / (std::sqrt(v_hat) + eps);
          }
        }
        Attrs attrs(&GetOp(OpId::adam));
        attrs.Set("lr", AttrValue(lr));
        attrs.Set("beta1", AttrValue(beta1));
        attrs.Set("beta2", AttrValue(beta2));
        attrs.Set("eps", AttrValue(eps));
        attrs.Set("weight_decay", AttrValue(c.weight_decay));
        attrs.Set("decoupled", AttrValue(c.decoupled));
        attrs.Set("maximize", AttrValue(c.maximize));
        attrs.Set("step", AttrValue(int64_t{step}));
        TestContext context;
        const absl::Status status =
            RunKernel(&Cpu_adam, context, attrs,
                      Concat({params, grads, means, squares}), {});
        ASSERT_TRUE(status.ok()) << status;
      }
      ExpectClose(params, p, dtype);
      ExpectClose(means, m, dtype);
      ExpectClose(squares, v, dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Options, AdamTest,
                         testing::Values(AdamCase{0, false, false},
                                         AdamCase{0.1, false, true},
                                         AdamCase{0.1, true, false}));

// Elements of all parameters are one range for the threads: borders fall
// inside parameters.
TEST(OptimizerThreadsTest, TheSameForAnyThreadCount) {
  std::vector<std::vector<double>> results;
  for (int threads : {1, 2, 3}) {
    std::vector<TestTensor> all;
    for (int list = 0; list < 3; ++list) {
      for (int64_t n : {10, 40000, 70001, 3}) {
        all.emplace_back(DType::kFloat32, Dims{n});
        for (int64_t i = 0; i < n; ++i) {
          all.back().Set(i, std::cos(i * 0.7 + list));
        }
      }
    }
    Attrs attrs(&GetOp(OpId::sgd));
    attrs.Set("lr", AttrValue(0.1));
    attrs.Set("momentum", AttrValue(0.9));
    attrs.Set("weight_decay", AttrValue(0.3));
    TestContext context(threads);
    ASSERT_TRUE(RunKernel(&Cpu_sgd, context, attrs, all, {}).ok());
    std::vector<double> values;
    for (const TestTensor& t : all) {
      const auto v = t.Values();
      values.insert(values.end(), v.begin(), v.end());
    }
    results.push_back(values);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Without decay an infinite parameter stays infinite: 0 * inf is not added.
TEST(OptimizerThreadsTest, NoDecayNoProduct) {
  Attrs attrs(&GetOp(OpId::sgd));
  attrs.Set("lr", AttrValue(0.1));
  TestContext context;
  const TestTensor p(DType::kFloat32, {1}, {INFINITY});
  const TestTensor g(DType::kFloat32, {1}, {1});
  ASSERT_TRUE(RunKernel(&Cpu_sgd, context, attrs, {p, g, g}, {}).ok());
  EXPECT_EQ(p.Get(0), INFINITY);
}

}  // namespace
}  // namespace holdfast::cpu
