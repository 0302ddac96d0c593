// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
// Elementwise ops against the same function in double, over types, layouts,
// sizes and thread counts.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/test_context.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
const DType kTypes[] = {DType::kBool,  DType::kUInt8,   DType::kInt32,
                        DType::kInt64, DType::kFloat32, DType::kFloat64};

double PythonMod(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

struct Unary {
  OpId id;
  KernelFn kernel;
  double (*reference)(double);
};
#define UNARY(name, expression)                                            \
  Unary {                                                                  \
    OpId::name, &Cpu_##name, [](double a) -> double { return expression; } \
  }
const Unary kUnary[] = {
    UNARY(neg, -a),
    UNARY(abs, std::fabs(a)),
    UNARY(sign, (a > 0) - (a < 0)),
    UNARY(relu, a > 0 ? a : 0),
    UNARY(exp, std::exp(a)),
    UNARY(expm1, std::expm1(a)),
    UNARY(log, std::log(a)),
    UNARY(log1p, std::log1p(a)),
    UNARY(sqrt, std::sqrt(a)),
    UNARY(rsqrt, 1 / std::sqrt(a)),
    UNARY(reciprocal, 1 / a),
    UNARY(sin, std::sin(a)),
    UNARY(cos, std::cos(a)),
    UNARY(tanh, std::tanh(a)),
    UNARY(sigmoid, 1 / (1 + std::exp(-a))),
    UNARY(erf, std::erf(a)),
    UNARY(floor, std::floor(a)),
    UNARY(ceil, std::ceil(a)),
    UNARY(round, std::nearbyint(a)),
    UNARY(logical_not, a == 0),
    UNARY(isnan, std::isnan(a)),
    UNARY(isfinite, std::isfinite(a)),
};

struct Binary {
  OpId id;
  KernelFn kernel;
  double (*reference)(double, double);
};
#define BINARY(name, expression)                                \
  Binary {                                                      \
    OpId::name, &Cpu_##name,                                    \
        [](double a, double b) -> double { return expression; } \
  }
const Binary kBinary[] = {
    BINARY(add, a + b),
    BINARY(sub, a - b),
    BINARY(mul, a* b),
    BINARY(div, a / b),
    BINARY(floor_divide, std::floor(a / b)),
    BINARY(remainder, PythonMod(a, b)),
    BINARY(pow, std::pow(a, b)),
    BINARY(maximum, std::isnan(a)            ? a
                    : std::isnan(b) || b > a ? b
                                             : a),
    BINARY(minimum, std::isnan(a)            ? a
                    : std::isnan(b) || b < a ? b
                                             : a),
    BINARY(eq, a == b),
    BINARY(ne, a != b),
    BINARY(lt, a < b),
    BINARY(le, a <= b),
    BINARY(gt, a > b),
    BINARY(ge, a >= b),
    BINARY(logical_and, a != 0 && b != 0),
    BINARY(logical_or, a != 0 || b != 0),
    BINARY(logical_xor, (a != 0) != (b != 0)),
    BINARY(bitwise_and, static_cast<int64_t>(a) & static_cast<int64_t>(b)),
    BINARY(bitwise_or, static_cast<int64_t>(a) | static_cast<int64_t>(b)),
    BINARY(bitwise_xor, static_cast<int64_t>(a) ^ static_cast<int64_t>(b)),
    BINARY(relu_backward, b <= 0 ? 0 : a),
};

// What `value` becomes in an element of type `dtype`.
double Stored(DType dtype, double value) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kUInt8:
      return PythonMod(std::trunc(value), 256);
    case DType::kInt32:
    case DType::kInt64:
      return std::trunc(value);
    case DType::kFloat32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

// Values around zero, with halves for floats; the divisor's (`nonzero`) are
// small, so that powers of integers stay exact in double.
void Fill(const TestTensor& t, int seed, bool nonzero) {
  const bool is_float = IsFloat(t.dtype());
  const bool has_sign =
      is_float || t.dtype() == DType::kInt32 || t.dtype() == DType::kInt64;
  for (int64_t i = 0; i < t.numel(); ++i) {
    double v = static_cast<double>((i * 7 + seed * 3) % 13);
    if (nonzero) v = v - std::floor(v / 5) * 5 + 1;
    if (has_sign && (i + seed) % 3 == 0) v = -v;
    if (is_float) v *= 0.5;
    t.Set(i, Stored(t.dtype(), v));
  }
}

struct Layout {
  const char* name;
  TestTensor (*make)(DType dtype, const Dims& shape);
};
TestTensor MakeContiguousTensor(DType dtype, const Dims& shape) {
  return TestTensor(dtype, shape);
}
TestTensor MakeTransposed(DType dtype, const Dims& shape) {
  if (shape.size() < 2) return TestTensor(dtype, shape);
  const int last = static_cast<int>(shape.size()) - 1;
  Dims swapped = shape;
  std::swap(swapped[0], swapped[last]);
  return TestTensor(dtype, swapped).Transpose(0, last);
}
// Every second element of every second row, away from the storage's start.
TestTensor MakeSliced(DType dtype, const Dims& shape) {
  Dims larger = shape;
  for (int64_t& size : larger) size = size * 2 + 3;
  TestTensor t(dtype, larger);
  for (size_t d = 0; d < shape.size(); ++d) {
    t = t.Slice(static_cast<int>(d), 1, 1 + shape[d] * 2, 2);
  }
  return t;
}
// The first dimension repeated.
TestTensor MakeExpanded(DType dtype, const Dims& shape) {
  if (shape.empty()) return TestTensor(dtype, shape);
  Dims narrow = shape;
  narrow[0] = std::min<int64_t>(narrow[0], 1);
  return TestTensor(dtype, narrow).Expand(shape);
}
const Layout kLayouts[] = {{"contiguous", MakeContiguousTensor},
                           {"transposed", MakeTransposed},
                           {"sliced", MakeSliced},
                           {"expanded", MakeExpanded}};

void ExpectNear(double got, double want, DType dtype, int64_t i,
                const std::string& where) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << where << " at " << i << ": " << got;
    return;
  }
  if (got == want) return;
  // 8 ulp: inputs of float32 functions are rounded once more than here.
  const double epsilon = dtype == DType::kFloat32 ? 0x1p-23 : 0x1p-52;
  const double tolerance =
      IsFloat(dtype) ? 8 * epsilon * std::max(std::fabs(want), 1e-30) : 0;
  EXPECT_LE(std::fabs(got - want), tolerance)
      << where << " at " << i << ": " << got << ", not " << want;
}

void CheckUnary(const Unary& op, DType dtype, const Layout& layout,
                const Dims& shape) {
  const TestTensor input = layout.make(dtype, shape);
  Fill(input, 1, false);
  const Attrs attrs(&GetOp(op.id));
  TestContext context;
  const auto out = RunOp(op.kernel, context, attrs, {input});
  if (absl::IsUnimplemented(out.status()) ||
      absl::IsInvalidArgument(out.status())) {
    // Types that the op does not have; inference says which.
    EXPECT_EQ(dtype, DType::kBool) << attrs.schema().name;
    return;
  }
  ASSERT_TRUE(out.ok()) << out.status();
  const TestTensor& result = (*out)[0];
  const std::string where =
      attrs.schema().name + " " + input.spec().ToString() + " " + layout.name;
  for (int64_t i = 0; i < input.numel() && !testing::Test::HasFailure(); ++i) {
    ExpectNear(result.Get(i),
               Stored(result.dtype(), op.reference(input.Get(i))),
               result.dtype(), i, where);
  }
}

TEST(UnaryTest, MatchesDouble) {
  for (const Unary& op : kUnary) {
    for (DType dtype : kTypes) {
      for (const Layout& layout : kLayouts) {
        for (const Dims& shape : {Dims{}, Dims{0}, Dims{7}, Dims{3, 0, 2},
                                  Dims{37, 53}, Dims{2, 3, 4, 5, 1, 3}}) {
          CheckUnary(op, dtype, layout, shape);
        }
      }
    }
  }
}

TEST(UnaryTest, LargeAndTheSameForAnyThreadCount) {
  for (const Unary& op : kUnary) {
    for (DType dtype : {DType::kFloat32, DType::kInt64}) {
      const Attrs attrs(&GetOp(op.id));
      CheckUnary(op, dtype, kLayouts[0], {100003});
      CheckUnary(op, dtype, kLayouts[1], {307, 331});
      const TestTensor input = MakeTransposed(dtype, {331, 307});
      Fill(input, 2, false);
      TestContext one(1), two(2), three(3);
      const auto a = RunOp(op.kernel, one, attrs, {input});
      const auto b = RunOp(op.kernel, two, attrs, {input});
      const auto c = RunOp(op.kernel, three, attrs, {input});
      ASSERT_TRUE(a.ok() && b.ok() && c.ok());
      const size_t bytes = (*a)[0].spec().nbytes();
      EXPECT_EQ(0, std::memcmp((*a)[0].view().data, (*b)[0].view().data, bytes))
          << attrs.schema().name;
      EXPECT_EQ(0, std::memcmp((*a)[0].view().data, (*c)[0].view().data, bytes))
          << attrs.schema().name;
    }
  }
}

// A result must not depend on where its element stands.
TEST(UnaryTest, SameValueSameResultAtEveryPosition) {
  for (const Unary& op : kUnary) {
    TestTensor input(DType::kFloat32, {99});
    for (int64_t i = 0; i < 99; ++i) input.Set(i, 0.7331);
    TestContext context;
    const auto out = RunOp(op.kernel, context, Attrs(&GetOp(op.id)), {input});
    ASSERT_TRUE(out.ok());
    for (int64_t i = 1; i < 99; ++i) {
      EXPECT_EQ((*out)[0].Get(i), (*out)[0].Get(0)) << GetOp(op.id).name;
    }
  }
}

TEST(UnaryTest, InPlaceOnEveryLayout) {
  for (const Layout& layout : {kLayouts[0], kLayouts[1], kLayouts[2]}) {
    const TestTensor input = layout.make(DType::kFloat32, {40, 50});
    Fill(input, 3, false);
    const std::vector<double> before = input.Values();
    TestContext context;
    ASSERT_TRUE(
        RunOp(&Cpu_neg, context, Attrs(&GetOp(OpId::neg)), {input}, true).ok());
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_EQ(input.Get(i), -before[i]) << layout.name;
    }
  }
}

TEST(UnaryTest, SpecialValues) {
  const TestTensor input(DType::kFloat32, {5}, {kNan, kInf, -kInf, 0.0, -1.0});
  const std::pair<OpId, std::pair<KernelFn, std::vector<double>>> cases[] = {
      {OpId::exp, {&Cpu_exp, {kNan, kInf, 0, 1, std::exp(-1)}}},
      {OpId::log, {&Cpu_log, {kNan, kInf, kNan, -kInf, kNan}}},
      {OpId::log1p, {&Cpu_log1p, {kNan, kInf, kNan, 0, -kInf}}},
      {OpId::expm1, {&Cpu_expm1, {kNan, kInf, -1, 0, std::expm1(-1)}}},
      {OpId::tanh, {&Cpu_tanh, {kNan, 1, -1, 0, std::tanh(-1)}}},
      {OpId::sin, {&Cpu_sin, {kNan, kNan, kNan, 0, std::sin(-1)}}},
      {OpId::sqrt, {&Cpu_sqrt, {kNan, kInf, kNan, 0, kNan}}},
      {OpId::sigmoid, {&Cpu_sigmoid, {kNan, 1, 0, 0.5, 1 / (1 + M_E)}}},
      {OpId::erf, {&Cpu_erf, {kNan, 1, -1, 0, std::erf(-1)}}},
      {OpId::relu, {&Cpu_relu, {kNan, kInf, 0, 0, 0}}},
      {OpId::isnan, {&Cpu_isnan, {1, 0, 0, 0, 0}}},
      {OpId::isfinite, {&Cpu_isfinite, {0, 0, 0, 1, 1}}},
  };
  for (const auto& [id, expected] : cases) {
    TestContext context;
    const auto out = RunOp(expected.first, context, Attrs(&GetOp(id)), {input});
    ASSERT_TRUE(out.ok());
    for (int i = 0; i < 5; ++i) {
      ExpectNear((*out)[0].Get(i), static_cast<float>(expected.second[i]),
                 DType::kFloat32, i, GetOp(id).name);
    }
  }
  // Far arguments leave the range of the fast reduction.
  const TestTensor far(DType::kFloat32, {2}, {1e6f, -3e10f});
  TestContext context;
  const auto out = RunOp(&Cpu_sin, context, Attrs(&GetOp(OpId::sin)), {far});
  ExpectNear((*out)[0].Get(0), std::sin(far.Get(0)), DType::kFloat32, 0, "sin");
  ExpectNear((*out)[0].Get(1), std::sin(far.Get(1)), DType::kFloat32, 1, "sin");
}

TEST(UnaryTest, RoundsHalvesToEven) {
  const TestTensor input(DType::kFloat64, {6},
                         {0.5, 1.5, 2.5, -0.5, -1.5, 2.6});
  TestContext context;
  const auto out =
      RunOp(&Cpu_round, context, Attrs(&GetOp(OpId::round)), {input});
  EXPECT_THAT((*out)[0].Values(), testing::ElementsAre(0, 2, 2, 0, -2, 3));
}

void CheckBinary(const Binary& op, const TestTensor& a, const TestTensor& b,
                 const std::string& layout) {
  const Attrs attrs(&GetOp(op.id));
  TestContext context;
  const auto out = RunOp(op.kernel, context, attrs, {a, b});
  const std::string where = attrs.schema().name + " " + a.spec().ToString() +
                            " " + b.spec().ToString() + " " + layout;
  if (!out.ok()) {
    // Some ops refuse bool, bitwise ops refuse floats, a gradient integers.
    EXPECT_TRUE(op.id == OpId::relu_backward || a.dtype() == DType::kBool ||
                b.dtype() == DType::kBool || IsFloat(a.dtype()) ||
                IsFloat(b.dtype()))
        << where << ": " << out.status();
    return;
  }
  const TestTensor& result = (*out)[0];
  const TensorSpec* specs[] = {&a.spec(), &b.spec()};
  const DType type = ResultType(attrs, specs);
  const Dims& shape = result.spec().shape;
  const TestTensor ea = a.Expand(shape), eb = b.Expand(shape);
  for (int64_t i = 0; i < result.numel() && !testing::Test::HasFailure(); ++i) {
    // Operands take the computation type first (int64 + float32 is float32).
    const double x = Stored(type, ea.Get(i)), y = Stored(type, eb.Get(i));
    double want = op.reference(x, y);
    if (type == DType::kBool && result.dtype() == DType::kBool) {
      want = want != 0;
    }
    ExpectNear(result.Get(i), Stored(result.dtype(), want), result.dtype(), i,
               where);
  }
}

TEST(BinaryTest, MatchesDoubleOverTypesAndLayouts) {
  for (const Binary& op : kBinary) {
    for (DType a_type : kTypes) {
      for (DType b_type : kTypes) {
        const bool integer_power =
            op.id == OpId::pow && IsIntegral(a_type) && IsIntegral(b_type);
        if (integer_power && b_type != DType::kUInt8) continue;  // see below
        for (const Layout& a_layout : kLayouts) {
          for (const Layout& b_layout : kLayouts) {
            const TestTensor a = a_layout.make(a_type, {5, 1, 7});
            const TestTensor b = b_layout.make(b_type, {3, 7});
            Fill(a, 1, false);
            Fill(b, 2, true);
            if (op.id == OpId::pow && a_type == DType::kUInt8) {
              for (int64_t i = 0; i < a.numel(); ++i) a.Set(i, i % 4);
            }
            CheckBinary(op, a, b,
                        std::string(a_layout.name) + "+" + b_layout.name);
          }
        }
      }
    }
  }
}

TEST(BinaryTest, SizesAndScalars) {
  for (const Binary& op : kBinary) {
    const bool bits = op.id == OpId::bitwise_and || op.id == OpId::bitwise_or ||
                      op.id == OpId::bitwise_xor;
    const DType type = bits ? DType::kInt32 : DType::kFloat32;
    for (const Dims& shape :
         {Dims{0}, Dims{1}, Dims{7}, Dims{1000}, Dims{1025}, Dims{100003}}) {
      const TestTensor a(type, shape), b(type, shape);
      const TestTensor scalar(type, {}), one(type, {1});
      Fill(a, 1, false);
      for (const TestTensor& t : {b, scalar, one}) Fill(t, 2, true);
      CheckBinary(op, a, b, "same shape");
      CheckBinary(op, a, scalar, "scalar right");
      CheckBinary(op, scalar, b, "scalar left");
      CheckBinary(op, a, one, "one element");
    }
    // Long rows, with an operand repeated along them and across them.
    const TestTensor a(type, {9, 1500}), row(type, {1500}),
        column(type, {9, 1});
    Fill(a, 1, false);
    Fill(row, 2, true);
    Fill(column, 2, true);
    CheckBinary(op, a, row, "row");
    CheckBinary(op, a, column, "column");
    CheckBinary(op, column, row, "outer");
    CheckBinary(op, MakeTransposed(type, {0, 4}), row.Slice(0, 0, 4), "empty");
    // Short ones, more than a block's worth and several to a block.
    for (int64_t n : {2, 3, 10, 33, 300}) {
      const TestTensor x(type, {70, 5, n}), last(type, {n}),
          middle(type, {5, 1}), both(type, {5, n}), first(type, {70, 1, 1});
      Fill(x, 1, false);
      for (const TestTensor& t : {last, middle, both, first}) Fill(t, 2, true);
      CheckBinary(op, x, last, "short rows");
      CheckBinary(op, x, middle, "short columns");
      CheckBinary(op, x, both, "a matrix repeated");
      CheckBinary(op, x, first, "one of each");
      CheckBinary(op, first, both, "outer of short rows");
    }
  }
}

TEST(BinaryTest, TheSameForAnyThreadCount) {
  for (const Binary& op : kBinary) {
    if (op.id == OpId::bitwise_and || op.id == OpId::bitwise_or ||
        op.id == OpId::bitwise_xor) {
      continue;
    }
    const TestTensor a(DType::kFloat32, {401, 501});
    const TestTensor b = MakeTransposed(DType::kFloat32, {401, 501});
    Fill(a, 1, false);
    Fill(b, 2, true);
    for (const TestTensor& other : {a, b}) {
      TestContext one(1), two(2);
      const auto x = RunOp(op.kernel, one, Attrs(&GetOp(op.id)), {a, other});
      const auto y = RunOp(op.kernel, two, Attrs(&GetOp(op.id)), {a, other});
      ASSERT_TRUE(x.ok() && y.ok());
      EXPECT_EQ(0, std::memcmp((*x)[0].view().data, (*y)[0].view().data,
                               (*x)[0].spec().nbytes()))
          << GetOp(op.id).name;
    }
  }
}

TEST(BinaryTest, InPlace) {
  // The output is narrower than the computation, or has strides.
  for (const Layout& layout : {kLayouts[0], kLayouts[1], kLayouts[2]}) {
    const TestTensor a = layout.make(DType::kFloat32, {30, 40});
    const TestTensor b(DType::kFloat64, {40});
    Fill(a, 1, false);
    Fill(b, 2, true);
    const std::vector<double> before = a.Values();
    TestContext context(2);
    ASSERT_TRUE(
        RunOp(&Cpu_mul, context, Attrs(&GetOp(OpId::mul)), {a, b}, true).ok());
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_EQ(a.Get(i), before[i] * b.Get(i % 40)) << layout.name;
    }
    ASSERT_TRUE(
        RunOp(&Cpu_add, context, Attrs(&GetOp(OpId::add)), {a, a}, true).ok());
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_EQ(a.Get(i), 2 * before[i] * b.Get(i % 40)) << layout.name;
    }
  }
}

TEST(BinaryTest, NanTravelsThroughMaximumAndMinimum) {
  const TestTensor a(DType::kFloat32, {3}, {kNan, 1, 2});
  const TestTensor b(DType::kFloat32, {3}, {0, kNan, 3});
  TestContext context;
  const auto high =
      RunOp(&Cpu_maximum, context, Attrs(&GetOp(OpId::maximum)), {a, b});
  const auto low =
      RunOp(&Cpu_minimum, context, Attrs(&GetOp(OpId::minimum)), {a, b});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::isnan((*high)[0].Get(i)));
    EXPECT_TRUE(std::isnan((*low)[0].Get(i)));
  }
  EXPECT_EQ((*high)[0].Get(2), 3);
  EXPECT_EQ((*low)[0].Get(2), 2);
}

template <typename T>
TestTensor Vector(std::vector<T> values) {
  TestTensor t(kDTypeOf<T>, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = values[i];
  return t;
}

TEST(BinaryTest, IntegersWrapAndNeverTrap) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  TestContext context;
  auto run = [&](OpId id, KernelFn kernel, const TestTensor& a,
                 const TestTensor& b) {
    auto out = RunOp(kernel, context, Attrs(&GetOp(id)), {a, b});
    EXPECT_TRUE(out.ok()) << out.status();
    return (*out)[0];
  };
  const TestTensor min = Vector<int32_t>({kMin}), minus = Vector<int32_t>({-1});
  const TestTensor min64 = Vector<int64_t>({kMin64});
  const TestTensor minus64 = Vector<int64_t>({-1});
  EXPECT_EQ(run(OpId::floor_divide, &Cpu_floor_divide, min, minus).Get(0),
            kMin);
  EXPECT_EQ(run(OpId::remainder, &Cpu_remainder, min, minus).Get(0), 0);
  EXPECT_EQ(run(OpId::floor_divide, &Cpu_floor_divide, min64, minus64)
                .data<int64_t>()[0],
            kMin64);
  EXPECT_EQ(run(OpId::add, &Cpu_add, min, minus).Get(0), 2147483647.0);
  EXPECT_EQ(run(OpId::sub, &Cpu_sub, min, Vector<int32_t>({1})).Get(0),
            2147483647.0);
  EXPECT_EQ(run(OpId::mul, &Cpu_mul, min, minus).Get(0), kMin);
  EXPECT_EQ(run(OpId::floor_divide, &Cpu_floor_divide, Vector<int32_t>({-7, 7}),
                Vector<int32_t>({2, -2}))
                .Values(),
            (std::vector<double>{-4, -4}));
  EXPECT_EQ(run(OpId::remainder, &Cpu_remainder, Vector<int32_t>({-7, 7}),
                Vector<int32_t>({2, -2}))
                .Values(),
            (std::vector<double>{1, -1}));
  // Powers by squaring; negative exponents round toward zero.
  EXPECT_EQ(run(OpId::pow, &Cpu_pow, Vector<int64_t>({3, -2, 1, -1, -1, 5}),
                Vector<int64_t>({4, 63, -9, -3, -4, -1}))
                .Values(),
            (std::vector<double>{81, -9223372036854775808.0, 1, -1, 1, 0}));
}

TEST(BinaryTest, DivisionOfIntegersByZeroIsAnErrorThatWritesNothing) {
  for (const auto& [id, kernel] :
       {std::pair<OpId, KernelFn>{OpId::floor_divide, &Cpu_floor_divide},
        {OpId::remainder, &Cpu_remainder}}) {
    const Attrs attrs(&GetOp(id));
    TestTensor a(DType::kInt32, {2000}), b(DType::kUInt8, {2000});
    for (int64_t i = 0; i < 2000; ++i) {
      a.Set(i, 7);
      b.Set(i, i == 1500 ? 0 : 2);
    }
    TestContext context;
    const auto out = RunOp(kernel, context, attrs, {a, b}, true);
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(out.status().message()),
                testing::AllOf(testing::StartsWith("[" + attrs.schema().name),
                               testing::HasSubstr("ZeroDivisionError"),
                               testing::HasSubstr("i32[2000]")));
    for (int64_t i = 0; i < 2000; ++i) ASSERT_EQ(a.Get(i), 7);
    // A float divisor, and an empty output, are no error.
    const TestTensor zero(DType::kFloat32, {}, {0});
    EXPECT_TRUE(RunOp(kernel, context, attrs, {a, zero}).ok());
    EXPECT_TRUE(RunOp(kernel, context, attrs,
                      {a.Slice(0, 0, 0), TestTensor(DType::kInt32, {}, {0})})
                    .ok());
  }
}

TEST(BinaryTest, PowersByNumber) {
  const TestTensor a(DType::kFloat32, {3}, {2, 3, 0.25});
  for (double exponent : {2.0, 3.0, 0.5, -0.5, -1.0, 1.0, 0.0, -2.5}) {
    Attrs attrs(&GetOp(OpId::pow));
    attrs.Set("other", AttrValue(exponent));
    TestContext context;
    const auto out = RunOp(&Cpu_pow, context, attrs,
                           {a, TestTensor(DType::kFloat32, {}, {exponent})});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int i = 0; i < 3; ++i) {
      ExpectNear((*out)[0].Get(i), std::pow(a.Get(i), exponent),
                 DType::kFloat32, i, "pow");
    }
  }
}

// A number makes the computation type that its view has.
TEST(BinaryTest, NumberDecidesComputationType) {
  const TestTensor a = Vector<int32_t>({1, 2, 3});
  Attrs attrs(&GetOp(OpId::lt));
  attrs.Set("other", AttrValue(2.5));
  TestContext context;
  const auto out = RunOp(&Cpu_lt, context, attrs,
                         {a, TestTensor(DType::kFloat32, {}, {2.5})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].Values(), testing::ElementsAre(1, 1, 0));
}

// Bytes other than 0 and 1 in a bool tensor count as true.
TEST(BinaryTest, AnyNonzeroByteIsTrue) {
  TestTensor a(DType::kBool, {3}), b(DType::kBool, {3});
  const uint8_t bytes[] = {2, 0, 255};
  std::memcpy(a.view().data, bytes, 3);
  for (int i = 0; i < 3; ++i) b.Set(i, 1);
  TestContext context;
  const auto both = RunOp(&Cpu_bitwise_and, context,
                          Attrs(&GetOp(OpId::bitwise_and)), {a, b});
  EXPECT_THAT((*both)[0].Values(), testing::ElementsAre(1, 0, 1));
  const auto same = RunOp(&Cpu_eq, context, Attrs(&GetOp(OpId::eq)), {a, b});
  EXPECT_THAT((*same)[0].Values(), testing::ElementsAre(1, 0, 1));
}

}  // namespace
}  // namespace holdfast::cpu
