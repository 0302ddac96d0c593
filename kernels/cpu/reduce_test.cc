// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// sum, nansum, mean, count_nonzero, amax, amin, argmax, argmin, all, any,
// cumsum against plain loops.
#include <algorithm>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const DType kTypes[] = {DType::kBool,  DType::kUInt8,   DType::kInt32,
                        DType::kInt64, DType::kFloat32, DType::kFloat64};

// The elements that make each result, in row-major order.
std::vector<std::vector<double>> Groups(const TestTensor& t, const Dims& dims) {
  const Dims& shape = t.spec().shape;
  std::vector<bool> reduced(shape.size(), dims.empty());
  for (int64_t d : dims) reduced[d < 0 ? d + shape.size() : d] = true;
  Dims kept;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!reduced[d]) kept.push_back(shape[d]);
  }
  std::vector<std::vector<double>> groups(NumElements(kept));
  for (int64_t i = 0; i < t.numel(); ++i) {
    const Dims index = Unravel(i, shape);
    Dims at;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!reduced[d]) at.push_back(index[d]);
    }
    groups[Ravel(at, kept)].push_back(t.Get(i));
  }
  return groups;
}

using Fold = std::function<double(const std::vector<double>&)>;

std::vector<double> Reference(const TestTensor& t, const Dims& dims,
                              const Fold& fold) {
  std::vector<double> out;
  for (const auto& group : Groups(t, dims)) out.push_back(fold(group));
  return out;
}

double Sum(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum;
}
double Mean(const std::vector<double>& v) { return Sum(v) / v.size(); }
double Max(const std::vector<double>& v) {
  double best = v[0];
  for (double x : v) best = x > best || std::isnan(x) ? x : best;
  return best;
}
double Min(const std::vector<double>& v) {
  double best = v[0];
  for (double x : v) best = x < best || std::isnan(x) ? x : best;
  return best;
}
double All(const std::vector<double>& v) {
  for (double x : v) {
    if (x == 0) return 0;
  }
  return 1;
}
double Any(const std::vector<double>& v) {
  for (double x : v) {
    if (x != 0) return 1;
  }
  return 0;
}
double CountNonzero(const std::vector<double>& v) {
  return static_cast<double>(v.size() - std::count(v.begin(), v.end(), 0.0));
}
double ArgMax(const std::vector<double>& v) {
  size_t best = 0;
  for (size_t i = 1; i < v.size(); ++i) {
    if (v[i] > v[best] || (std::isnan(v[i]) && !std::isnan(v[best]))) best = i;
  }
  return static_cast<double>(best);
}
double ArgMin(const std::vector<double>& v) {
  size_t best = 0;
  for (size_t i = 1; i < v.size(); ++i) {
    if (v[i] < v[best] || (std::isnan(v[i]) && !std::isnan(v[best]))) best = i;
  }
  return static_cast<double>(best);
}

// The error of float32 sums does not grow with their length.
TEST(ReduceTest, LongFloatSumsAreAccurate) {
  constexpr int64_t kRows = 3001, kCols = 4003;  // 1.2e7 elements
  const TestTensor t(DType::kFloat32, {kRows, kCols});
  std::vector<double> columns(kCols), rows(kRows);
  double total = 0;
  uint32_t state = 1;
  for (int64_t i = 0; i < t.numel(); ++i) {
    state = state * 1664525 + 1013904223;
    const float value = static_cast<float>(state >> 8) * 0x1p-24f + 1e-4f;
    t.data<float>()[i] = value;
    total += value;
    rows[i / kCols] += value;
    columns[i % kCols] += value;
  }
  const auto expect = [](const TestTensor& got, const double* expected) {
    for (int64_t i = 0; i < got.numel(); ++i) {
      ASSERT_NEAR(got.Get(i), expected[i], 1e-6 * expected[i]);
    }
  };
  for (OpId op : {OpId::sum, OpId::nansum}) {
    const TestTensor all = Op(op, {}, {t}, 1);
    expect(all, &total);
    EXPECT_EQ(all.Get(0), Op(op, {}, {t}, 2).Get(0));
    EXPECT_EQ(all.Get(0), Op(op, {}, {t}, 3).Get(0));
    for (int dim : {0, 1}) {
      const AttrList along = {{"dim", AttrValue(Dims{dim})}};
      const TestTensor one = Op(op, along, {t}, 1);
      expect(one, dim == 0 ? columns.data() : rows.data());
      EXPECT_EQ(one.Values(), Op(op, along, {t}, 2).Values());
    }
  }
}

TEST(ReduceTest, EveryTypeLayoutAndDimension) {
  const std::vector<Dims> all_dims = {{},     {0},    {1},    {2},      {-1},
                                      {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};
  const std::pair<OpId, Fold> ops[] = {{OpId::sum, Sum},
                                       {OpId::amax, Max},
                                       {OpId::amin, Min},
                                       {OpId::all, All},
                                       {OpId::any, Any},
                                       {OpId::mean, Mean},
                                       {OpId::count_nonzero, CountNonzero}};
  for (DType dtype : kTypes) {
    for (const Dims& size : {Dims{3, 5, 7}, Dims{4, 70, 33}}) {
      int layout = 0;
      for (const TestTensor& t : Layouts(dtype, size[0], size[1], size[2])) {
        ++layout;
        for (const Dims& dims : all_dims) {
          for (const auto& [op, fold] : ops) {
            if (op == OpId::mean && !IsFloat(dtype)) continue;
            const TestTensor got =
                Op(op, {{"dim", AttrValue(dims)}}, {t}, /*threads=*/2);
            ExpectNear(
                got, Reference(t, dims, fold), 1e-5,
                absl::StrCat(GetOp(op).name, " of ", t.spec().ToString(),
                             " layout ", layout, " over ", ShapeString(dims)));
          }
        }
      }
    }
  }
}

TEST(ReduceTest, ArgsOfEveryTypeLayoutAndDimension) {
  for (DType dtype : kTypes) {
    if (dtype == DType::kBool) continue;  // as in PyTorch
    for (const Dims& size : {Dims{3, 5, 7}, Dims{4, 70, 133}}) {
      int layout = 0;
      for (const TestTensor& t : Layouts(dtype, size[0], size[1], size[2])) {
        const std::string what =
            absl::StrCat(t.spec().ToString(), " layout ", ++layout);
        for (int64_t dim : {0, 1, 2}) {
          const AttrList attrs = {{"dim", AttrValue(dim)}};
          ExpectEqual(Op(OpId::argmax, attrs, {t}, 2),
                      Reference(t, {dim}, ArgMax), what);
          ExpectEqual(Op(OpId::argmin, attrs, {t}, 2),
                      Reference(t, {dim}, ArgMin), what);
        }
        ExpectEqual(Op(OpId::argmax, {}, {t}, 2), Reference(t, {}, ArgMax),
                    what);
        ExpectEqual(Op(OpId::argmin, {}, {t}, 2), Reference(t, {}, ArgMin),
                    what);
      }
    }
  }
}

TEST(ReduceTest, LargeFloatSumsArePrecise) {
  // Sequential float sums of 20 million tenths are off by 30 percent.
  const int64_t n = 20'000'000;
  TestTensor t(DType::kFloat32, {n});
  std::fill_n(t.data<float>(), n, 0.1f);
  const double want = static_cast<double>(0.1f) * static_cast<double>(n);
  EXPECT_NEAR(Op(OpId::sum, {}, {t}, 2).Get(0), want, want * 1e-6);
  EXPECT_NEAR(Op(OpId::mean, {}, {t}, 2).Get(0), 0.1f, 1e-7);
  // Down the columns too.
  TestTensor tall(DType::kFloat32, {n / 4, 4});
  std::fill_n(tall.data<float>(), n, 0.1f);
  const TestTensor sums = Op(OpId::sum, {{"dim", AttrValue(Dims{0})}}, {tall});
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(sums.Get(i), want / 4, want / 4 * 1e-6);
  }
}

TEST(ReduceTest, ResultsDoNotDependOnThreads) {
  for (const Dims& shape : {Dims{1'000'003}, Dims{3, 100'001}, Dims{100'001, 3},
                            Dims{64, 8, 300}, Dims{5000, 40}}) {
    const TestTensor t = Random(DType::kFloat32, shape);
    for (int d = -1; d < static_cast<int>(shape.size()); ++d) {
      const AttrList attrs = {
          {"dim", d < 0 ? AttrValue() : AttrValue(Dims{d})}};
      const TestTensor one = Op(OpId::sum, attrs, {t}, 1);
      for (int threads : {2, 3, 4}) {
        ExpectSameBits(one, Op(OpId::sum, attrs, {t}, threads));
      }
    }
  }
}

TEST(ReduceTest, NanWins) {
  for (int64_t n : {3, 100, 100'000}) {
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      TestTensor t = Random(DType::kFloat32, {n});
      t.Set(at, kNan);
      EXPECT_TRUE(std::isnan(Op(OpId::amax, {}, {t}, 2).Get(0)));
      EXPECT_TRUE(std::isnan(Op(OpId::amin, {}, {t}, 2).Get(0)));
      EXPECT_EQ(Op(OpId::argmax, {}, {t}, 2).Get(0), at);
      EXPECT_EQ(Op(OpId::argmin, {}, {t}, 2).Get(0), at);
      EXPECT_TRUE(std::isnan(Op(OpId::sum, {}, {t}, 2).Get(0)));
    }
  }
  // Down columns, and the first of several.
  TestTensor t = Random(DType::kFloat64, {50, 40});
  t.Set(7 * 40 + 3, kNan);
  t.Set(9 * 40 + 3, kNan);
  const TestTensor args =
      Op(OpId::argmax, {{"dim", AttrValue(int64_t{0})}}, {t});
  EXPECT_EQ(args.Get(3), 7);
}

// Ends of vectors, each with loads of its own.
TEST(ReduceTest, RowsOfEveryShortLength) {
  const std::pair<OpId, Fold> ops[] = {
      {OpId::sum, Sum},  {OpId::mean, Mean},     {OpId::amax, Max},
      {OpId::amin, Min}, {OpId::argmax, ArgMax}, {OpId::argmin, ArgMin}};
  for (DType dtype : kTypes) {
    for (int64_t n = 1; n <= 150; ++n) {
      TestTensor t = Random(dtype, {3, n});
      if (IsFloat(dtype)) t.Set(n + n * 3 / 4, kNan);
      for (const auto& [op, fold] : ops) {
        const bool arg = op == OpId::argmax || op == OpId::argmin;
        if (arg && dtype == DType::kBool) continue;
        if (op == OpId::mean && !IsFloat(dtype)) continue;
        const AttrValue dim = arg ? AttrValue(int64_t{1}) : AttrValue(Dims{1});
        ExpectNear(Op(op, {{"dim", dim}}, {t}), Reference(t, {1}, fold), 1e-5,
                   absl::StrCat(GetOp(op).name, " of ", t.spec().ToString()));
      }
    }
  }
}

TEST(ReduceTest, InfinitiesAreElements) {
  const double inf = std::numeric_limits<double>::infinity();
  TestTensor t(DType::kFloat32, {100}, std::vector<double>(100, -inf));
  EXPECT_EQ(Op(OpId::amax, {}, {t}).Get(0), -inf);
  EXPECT_EQ(Op(OpId::argmax, {}, {t}).Get(0), 0);
}

TEST(ReduceTest, FirstOfEqualsIsTheArg) {
  const TestTensor t(DType::kInt32, {2, 4}, {1, 3, 3, 0, 5, 0, 0, 5});
  const AttrList rows = {{"dim", AttrValue(int64_t{1})}};
  ExpectEqual(Op(OpId::argmax, rows, {t}), {1, 0});
  ExpectEqual(Op(OpId::argmin, rows, {t}), {3, 1});
}

TEST(ReduceTest, EmptyInputs) {
  const TestTensor none(DType::kFloat32, {0, 3});
  ExpectEqual(Op(OpId::sum, {}, {none}), {0});
  ExpectEqual(Op(OpId::sum, {{"dim", AttrValue(Dims{0})}}, {none}), {0, 0, 0});
  ExpectEqual(Op(OpId::mean, {{"dim", AttrValue(Dims{0})}}, {none}),
              {kNan, kNan, kNan});
  ExpectEqual(Op(OpId::all, {}, {none}), {1});
  ExpectEqual(Op(OpId::any, {}, {none}), {0});
  EXPECT_EQ(Op(OpId::amax, {{"dim", AttrValue(Dims{1})}}, {none}).numel(), 0);
  EXPECT_EQ(Op(OpId::argmax, {{"dim", AttrValue(int64_t{1})}}, {none}).numel(),
            0);
  EXPECT_EQ(Op(OpId::cumsum, {{"dim", AttrValue(int64_t{0})}}, {none}).numel(),
            0);
}

TEST(ReduceTest, RankZero) {
  const TestTensor t(DType::kFloat32, {}, {2.5});
  ExpectEqual(Op(OpId::sum, {}, {t}), {2.5});
  ExpectEqual(Op(OpId::sum, {{"dim", AttrValue(Dims{-1})}}, {t}), {2.5});
  ExpectEqual(Op(OpId::argmax, {{"dim", AttrValue(int64_t{0})}}, {t}), {0});
  ExpectEqual(Op(OpId::cumsum, {{"dim", AttrValue(int64_t{0})}}, {t}), {2.5});
}

TEST(ReduceTest, DtypeIsThatOfTheSum) {
  const TestTensor bytes(DType::kUInt8, {1000}, std::vector<double>(1000, 255));
  EXPECT_EQ(Op(OpId::sum, {}, {bytes}).Get(0), 255'000);  // int64
  EXPECT_EQ(
      Op(OpId::sum, {{"dtype", AttrValue(DType::kFloat32)}}, {bytes}).Get(0),
      255'000);
  EXPECT_EQ(
      Op(OpId::sum, {{"dtype", AttrValue(DType::kUInt8)}}, {bytes}).Get(0),
      255'000 % 256);
  EXPECT_EQ(Op(OpId::sum, {{"dtype", AttrValue(DType::kBool)}}, {bytes}).Get(0),
            1);
  const TestTensor halves(DType::kFloat32, {4}, {0.5, 1.5, 2.5, 1e10});
  EXPECT_EQ(
      Op(OpId::sum, {{"dtype", AttrValue(DType::kFloat64)}}, {halves}).Get(0),
      1e10 + 4.5);
  EXPECT_EQ(
      Op(OpId::sum, {{"dtype", AttrValue(DType::kInt64)}}, {halves}).Get(0),
      1e10 + 3);
}

TEST(ReduceTest, BytesOtherThanOneAreTrue) {
  TestTensor t(DType::kBool, {100});
  std::memset(t.view().data, 2, 100);
  EXPECT_EQ(Op(OpId::sum, {}, {t}).Get(0), 100);
  EXPECT_EQ(Op(OpId::all, {}, {t}).Get(0), 1);
  EXPECT_EQ(Op(OpId::amax, {}, {t}).Get(0), 1);
}

TEST(ReduceTest, CumsumEveryLayout) {
  for (DType dtype : kTypes) {
    for (const TestTensor& t : Layouts(dtype, 3, 17, 40)) {
      for (int64_t dim : {0, 1, 2}) {
        const Dims& shape = t.spec().shape;
        std::vector<double> want = t.Values();
        for (int64_t i = 0; i < t.numel(); ++i) {
          Dims index = Unravel(i, shape);
          if (index[dim]-- == 0) continue;
          want[i] += want[Ravel(index, shape)];
        }
        ExpectNear(Op(OpId::cumsum, {{"dim", AttrValue(dim)}}, {t}, 2), want,
                   1e-6);
      }
    }
  }
}

TEST(ReduceTest, ScratchShortageIsAnError) {
  const TestTensor t = Random(DType::kFloat32, {1'000'000});
  TestTensor out(DType::kFloat32, {});
  TestContext context;
  context.limit = 0;
  const absl::Status s =
      RunKernel(Cpu_sum, context, MakeAttrs(OpId::sum, {}), {t}, {out});
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace holdfast::cpu
