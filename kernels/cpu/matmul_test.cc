// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul and linear against triple loops.
#include "absl/strings/str_cat.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

const DType kTypes[] = {DType::kUInt8, DType::kInt32, DType::kInt64,
                        DType::kFloat32, DType::kFloat64};

// Matrices of rank 2 and more; batch dimensions broadcast.
std::vector<double> Reference(const TestTensor& a, const TestTensor& b,
                              const Dims& out_shape) {
  const Dims &as = a.spec().shape, &bs = b.spec().shape;
  const int64_t k = as.back();
  std::vector<double> out(NumElements(out_shape));
  for (size_t i = 0; i < out.size(); ++i) {
    const Dims at = Unravel(i, out_shape);
    const size_t rank = at.size();
    Dims ai(as.size()), bi(bs.size());
    for (size_t d = 0; d + 2 < as.size(); ++d) {
      ai[d] = as[d] == 1 ? 0 : at[rank - as.size() + d];
    }
    for (size_t d = 0; d + 2 < bs.size(); ++d) {
      bi[d] = bs[d] == 1 ? 0 : at[rank - bs.size() + d];
    }
    ai[as.size() - 2] = at[rank - 2];
    bi[bs.size() - 1] = at[rank - 1];
    for (int64_t p = 0; p < k; ++p) {
      ai[as.size() - 1] = p;
      bi[bs.size() - 2] = p;
      out[i] += a.Get(Ravel(ai, as)) * b.Get(Ravel(bi, bs));
    }
    if (a.dtype() == DType::kUInt8) out[i] = std::fmod(out[i], 256);
  }
  return out;
}

void Check(const TestTensor& a, const TestTensor& b, int threads = 2) {
  const TestTensor got = Op(OpId::matmul, {}, {a, b}, threads);
  ExpectNear(got, Reference(a, b, got.spec().shape),
             a.dtype() == DType::kFloat32 ? 1e-4 : 1e-12,
             absl::StrCat(a.spec().ToString(), " @ ", b.spec().ToString()));
}

TEST(MatmulTest, SizesAndTypes) {
  // Below, at and above the tile and block sizes of gemm.cc.
  const Dims sizes[] = {{1, 1, 1},     {2, 3, 4},    {6, 32, 5},
                        {7, 33, 17},   {5, 1, 300},  {1, 7, 300},
                        {13, 65, 257}, {64, 64, 64}, {1, 1, 5000},
                        {100, 3, 513}, {3, 200, 256}};
  for (DType dtype : kTypes) {
    for (const Dims& s : sizes) {
      Check(Random(dtype, {s[0], s[2]}, 1), Random(dtype, {s[2], s[1]}, 2));
      Check(Random(dtype, {s[0], s[2]}, 1), Random(dtype, {s[2], s[1]}, 2), 1);
    }
  }
}

TEST(MatmulTest, EveryLayoutOfBothOperands) {
  const int64_t m = 23, n = 37, k = 29;
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32}) {
    const std::vector<TestTensor> as = {
        Random(dtype, {m, k}),
        Random(dtype, {k, m}).Transpose(0, 1),
        Random(dtype, {m, 2 * k}).Slice(1, 0, 2 * k, 2),
        Random(dtype, {m, k + 3}).Slice(1, 3, k + 3),
        Random(dtype, {1, k}).Expand({m, k}),
        Random(dtype, {m, 1}).Expand({m, k})};
    const std::vector<TestTensor> bs = {
        Random(dtype, {k, n}),
        Random(dtype, {n, k}).Transpose(0, 1),
        Random(dtype, {k, 2 * n}).Slice(1, 0, 2 * n, 2),
        Random(dtype, {k + 5, n}).Slice(0, 5, k + 5),
        Random(dtype, {1, n}).Expand({k, n}),
        Random(dtype, {k, 1}).Expand({k, n})};
    for (const TestTensor& a : as) {
      for (const TestTensor& b : bs) Check(a, b);
    }
  }
}

TEST(MatmulTest, NarrowMatricesOfEveryLayout) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (int64_t m : {1, 40}) {
      for (int64_t n : {1, 40}) {
        for (int64_t k : {1, 40}) {
          const std::vector<TestTensor> as = {
              Random(dtype, {m, k}), Random(dtype, {k, m}).Transpose(0, 1),
              Random(dtype, {2 * m, 2 * k})
                  .Slice(0, 0, 2 * m, 2)
                  .Slice(1, 0, 2 * k, 2)};
          const std::vector<TestTensor> bs = {
              Random(dtype, {k, n}), Random(dtype, {n, k}).Transpose(0, 1),
              Random(dtype, {2 * k, 2 * n})
                  .Slice(0, 0, 2 * k, 2)
                  .Slice(1, 0, 2 * n, 2)};
          for (const TestTensor& a : as) {
            for (const TestTensor& b : bs) Check(a, b);
          }
        }
      }
    }
  }
}

TEST(MatmulTest, BatchesBroadcast) {
  for (DType dtype : kTypes) {
    Check(Random(dtype, {5, 9, 11}), Random(dtype, {5, 11, 13}));
    Check(Random(dtype, {5, 9, 11}), Random(dtype, {11, 13}));
    Check(Random(dtype, {9, 11}), Random(dtype, {5, 11, 13}));
    Check(Random(dtype, {4, 1, 9, 11}), Random(dtype, {3, 11, 13}));
    Check(Random(dtype, {4, 3, 9, 11}), Random(dtype, {4, 1, 11, 13}));
    Check(Random(dtype, {2, 9, 3, 11}).Transpose(1, 2),
          Random(dtype, {2, 3, 13, 11}).Transpose(2, 3));
    Check(Random(dtype, {9, 5, 11}).Transpose(0, 1), Random(dtype, {11, 13}));
    Check(Random(dtype, {300, 1, 4}), Random(dtype, {300, 4, 2}));
    Check(Random(dtype, {3, 1, 4}), Random(dtype, {4, 2}));
  }
  // Large ones run one after the other.
  Check(Random(DType::kFloat32, {2, 130, 140}),
        Random(DType::kFloat32, {2, 140, 150}));
}

TEST(MatmulTest, Vectors) {
  for (DType dtype : kTypes) {
    const TestTensor v = Random(dtype, {70}), m = Random(dtype, {70, 6});
    const TestTensor rows = Random(dtype, {4, 6, 70});
    const auto as_matrix = [](const TestTensor& t, const Dims& shape) {
      return TestTensor(t.dtype(), shape, t.Values());
    };
    const auto same = [&](const TestTensor& a, const TestTensor& b,
                          const TestTensor& a2, const TestTensor& b2) {
      ExpectNear(Op(OpId::matmul, {}, {a, b}),
                 Op(OpId::matmul, {}, {a2, b2}).Values(), 1e-6);
    };
    const TestTensor row = as_matrix(v, {1, 70}),
                     column = as_matrix(v, {70, 1});
    same(v, v, row, column);
    same(v, m, row, m);
    same(rows, v, rows, column);
    Check(row, column);
    EXPECT_EQ(Op(OpId::matmul, {}, {v, v}).spec().rank(), 0);
    EXPECT_EQ(Op(OpId::matmul, {}, {rows, v}).spec().shape, (Dims{4, 6}));
    // Every second element.
    const TestTensor gaps = Random(dtype, {140}).Slice(0, 0, 140, 2);
    const TestTensor dense(dtype, {70}, gaps.Values());
    same(gaps, gaps, dense, dense);
    same(gaps, m, dense, m);
  }
}

TEST(MatmulTest, EmptyOperands) {
  ExpectEqual(Op(OpId::matmul, {},
                 {TestTensor(DType::kFloat32, {2, 0}),
                  TestTensor(DType::kFloat32, {0, 3})}),
              std::vector<double>(6, 0));
  EXPECT_EQ(Op(OpId::matmul, {},
               {TestTensor(DType::kFloat32, {0, 4}),
                TestTensor(DType::kFloat32, {4, 3})})
                .numel(),
            0);
  EXPECT_EQ(Op(OpId::matmul, {},
               {TestTensor(DType::kFloat64, {0, 2, 4}),
                TestTensor(DType::kFloat64, {4, 3})})
                .numel(),
            0);
  ExpectEqual(Op(OpId::linear, {},
                 {TestTensor(DType::kFloat32, {2, 0}),
                  TestTensor(DType::kFloat32, {3, 0}),
                  TestTensor(DType::kFloat32, {3}, {1, 2, 3})}),
              {1, 2, 3, 1, 2, 3});
}

TEST(MatmulTest, IntegersWrap) {
  const TestTensor a(DType::kInt32, {1, 2}, {2147483647, 2147483647});
  const TestTensor b(DType::kInt32, {2, 1}, {2, 1});
  EXPECT_EQ(Op(OpId::matmul, {}, {a, b}).Get(0), 2147483645);
}

TEST(MatmulTest, LinearAddsTheBias) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt64}) {
    for (const Dims& s : {Dims{3, 2, 4}, Dims{64, 48, 1100}, Dims{70, 9, 40},
                          Dims{1, 300, 700}}) {
      const int64_t rows = s[0], out = s[1], in = s[2];
      const TestTensor x = Random(dtype, {rows, in}, 1);
      const TestTensor w = Random(dtype, {out, in}, 2);
      for (const TestTensor& bias :
           {TestTensor(), Random(dtype, {out}, 3),
            Random(dtype, {2 * out}, 4).Slice(0, 0, 2 * out, 2),
            Random(dtype, {1}, 5).Expand({out})}) {
        std::vector<double> want = Reference(x, w.Transpose(0, 1), {rows, out});
        for (size_t i = 0; i < want.size(); ++i) {
          if (bias.view().data != nullptr) want[i] += bias.Get(i % out);
        }
        const double tolerance = dtype == DType::kFloat32 ? 1e-4 : 1e-12;
        ExpectNear(Op(OpId::linear, {}, {x, w, bias}, 2), want, tolerance);
        // The weight may be a view as well, and the rows a batch.
        const TestTensor wt =
            TestTensor(dtype, {in, out}, w.Transpose(0, 1).Values())
                .Transpose(0, 1);
        ExpectNear(Op(OpId::linear, {}, {x, wt, bias}, 2), want, tolerance);
        const TestTensor batch(dtype, {1, rows, 1, in}, x.Values());
        ExpectNear(Op(OpId::linear, {}, {batch, w, bias}, 2), want, tolerance);
      }
      ExpectNear(Op(OpId::linear, {},
                    {TestTensor(dtype, {in}, x.Slice(0, 0, 1).Values()), w,
                     TestTensor()}),
                 Reference(x.Slice(0, 0, 1), w.Transpose(0, 1), {1, out}),
                 1e-4);
    }
  }
}

TEST(MatmulTest, OwnProductsDoNotDependOnThreads) {
  for (DType dtype : {DType::kFloat64, DType::kFloat32}) {
    // Strides that oneDNN does not take.
    const TestTensor a = Random(dtype, {150, 600}).Slice(1, 0, 600, 2);
    const TestTensor b = Random(dtype, {300, 140}).Slice(1, 0, 140, 2);
    const TestTensor one = Op(OpId::matmul, {}, {a, b}, 1);
    for (int threads : {2, 3, 4}) {
      ExpectSameBits(one, Op(OpId::matmul, {}, {a, b}, threads));
    }
  }
}

TEST(MatmulTest, LongDotProductsArePrecise) {
  const int64_t n = 10'000'000;
  TestTensor t(DType::kFloat32, {n});
  std::fill_n(t.data<float>(), n, 0.1f);
  const double want = 0.1f * 0.1f * static_cast<double>(n);
  EXPECT_NEAR(Op(OpId::matmul, {}, {t, t}).Get(0), want, want * 1e-6);
}

TEST(GemmTest, AccumulatesAndAddsBiasOverSeveralBlocks) {
  const int64_t m = 9, n = 40, k = 600;
  const TestTensor a = Random(DType::kFloat64, {m, k});
  const TestTensor b = Random(DType::kFloat64, {k, n});
  const TestTensor bias = Random(DType::kFloat64, {n});
  std::vector<double> want = Reference(a, b, {m, n});
  for (int64_t i = 0; i < m * n; ++i) want[i] += bias.Get(i % n) + 3;
  TestTensor c(DType::kFloat64, {m, n}, std::vector<double>(m * n, 3));
  GemmCall<double> call;
  call.m = m;
  call.n = n;
  call.k = k;
  call.a = a.data<double>();
  call.a_row = k;
  call.a_col = 1;
  call.b = b.data<double>();
  call.b_row = n;
  call.b_col = 1;
  call.c = c.data<double>();
  call.c_row = n;
  call.bias = bias.data<double>();
  call.accumulate = true;
  TestContext context(2);
  Gemm(context, call, context.Scratch(GemmWorkspaceBytes<double>(n, k)));
  ExpectNear(c, want, 1e-12);
}

}  // namespace
}  // namespace holdfast::cpu
