// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// gather, scatter, scatter_add, index_select, index_add against plain loops;
// indices out of range; operations in place.
#include "absl/strings/str_cat.h"
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

const DType kTypes[] = {DType::kBool,  DType::kUInt8,   DType::kInt32,
                        DType::kInt64, DType::kFloat32, DType::kFloat64};

AttrList Along(int64_t dim) { return {{"dim", AttrValue(dim)}}; }

// Shape of an index: smaller than the data everywhere but along dim.
Dims IndexShape(Dims shape, int64_t dim) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(d) == dim) {
      shape[d] += 3;
    } else if (shape[d] > 2) {
      shape[d] -= 1;
    }
  }
  return shape;
}

// Position in `shape` that element i of an index of `index_shape` stands for.
int64_t Target(int64_t i, const Dims& index_shape, int64_t dim, double index,
               const Dims& shape) {
  Dims at = Unravel(i, index_shape);
  at[dim] = static_cast<int64_t>(index);
  return Ravel(at, shape);
}

double Plus(DType dtype, double a, double b) {
  if (dtype == DType::kBool) return a != 0 || b != 0;
  return a + b;
}

TEST(IndexTest, GatherAndScatterEveryLayout) {
  for (DType dtype : kTypes) {
    for (const Dims& size :
         {Dims{3, 5, 7}, Dims{20, 30, 40}, Dims{4, 1, 6}, Dims{1, 5, 1}}) {
      for (const TestTensor& x : Layouts(dtype, size[0], size[1], size[2])) {
        for (int64_t i = 0; i < 6; ++i) {
          const int64_t dim = i % 3;
          const bool one = i > 2;  // one index along dim
          Dims shape = IndexShape(size, dim);
          if (one) shape[dim] = 1;
          TestTensor index = RandomIndex(shape, size[dim]);
          const TestTensor src = Random(dtype, shape, 3);
          if (dim == 1)
            index = RandomIndex({shape[0], shape[2], shape[1]}, size[dim])
                        .Transpose(1, 2);
          std::vector<double> gathered(index.numel());
          std::vector<double> scattered = x.Values(), added = x.Values();
          for (int64_t i = 0; i < index.numel(); ++i) {
            const int64_t at = Target(i, shape, dim, index.Get(i), size);
            gathered[i] = x.Get(at);
            scattered[at] = src.Get(i);
            added[at] = Plus(dtype, added[at], src.Get(i));
          }
          const std::string what = absl::StrCat(x.spec().ToString(), " ", dim);
          ExpectEqual(Op(OpId::gather, Along(dim), {x, index}, 2), gathered,
                      what);
          ExpectEqual(Op(OpId::scatter, Along(dim), {x, index, src}, 2),
                      scattered, what);
          ExpectNear(Op(OpId::scatter_add, Along(dim), {x, index, src}, 2),
                     added, 1e-5, what);
        }
      }
    }
  }
}

// One index for each row of each matrix: all that is left are rows.
TEST(IndexTest, GatherOfOneIndexPerRow) {
  const TestTensor x = Random(DType::kFloat32, {100, 3, 5});
  const TestTensor one = RandomIndex({100, 1, 1}, 3);
  const TestTensor index = one.Expand({100, 1, 5});
  std::vector<double> want;
  for (int64_t i = 0; i < 100; ++i) {
    const auto row = static_cast<int64_t>(one.Get(i));
    for (int64_t j = 0; j < 5; ++j)
      want.push_back(x.Get((i * 3 + row) * 5 + j));
  }
  ExpectEqual(Op(OpId::gather, Along(1), {x, index}, 2), want, "rows");
}

TEST(IndexTest, SelectAndAddEveryLayout) {
  for (DType dtype : kTypes) {
    for (DType index_type : {DType::kInt64, DType::kInt32}) {
      for (const Dims& size : {Dims{3, 5, 7}, Dims{20, 30, 40}}) {
        for (const TestTensor& x : Layouts(dtype, size[0], size[1], size[2])) {
          for (int64_t dim : {0, 1, 2}) {
            Dims shape = size;
            shape[dim] = 11;
            const TestTensor index =
                RandomIndex({22}, size[dim], 1, index_type).Slice(0, 0, 22, 2);
            const TestTensor source = Random(dtype, shape, 3);
            std::vector<double> selected(source.numel());
            std::vector<double> added = x.Values();
            for (int64_t i = 0; i < source.numel(); ++i) {
              const int64_t row = Unravel(i, shape)[dim];
              const int64_t at = Target(i, shape, dim, index.Get(row), size);
              selected[i] = x.Get(at);
              added[at] = Plus(dtype, added[at], source.Get(i));
            }
            const std::string what =
                absl::StrCat(x.spec().ToString(), " ", dim);
            ExpectEqual(Op(OpId::index_select, Along(dim), {x, index}, 2),
                        selected, what);
            ExpectNear(Op(OpId::index_add, Along(dim), {x, index, source}, 2),
                       added, 1e-5, what);
          }
        }
      }
    }
  }
}

TEST(IndexTest, RowsOfImages) {
  // The loader's case: trailing dimensions move as one piece.
  const TestTensor x = Random(DType::kFloat32, {50, 1, 28, 28});
  const TestTensor index = RandomIndex({64}, 50);
  const TestTensor got = Op(OpId::index_select, Along(0), {x, index}, 2);
  for (int64_t i = 0; i < 64; ++i) {
    for (int64_t j = 0; j < 784; ++j) {
      ASSERT_EQ(got.Get(i * 784 + j),
                x.Get(static_cast<int64_t>(index.Get(i)) * 784 + j));
    }
  }
}

TEST(IndexTest, LastOfDuplicatesWins) {
  const TestTensor x(DType::kInt32, {2, 2}, {0, 0, 0, 0});
  const TestTensor index(DType::kInt64, {3, 2}, {1, 1, 1, 0, 1, 1});
  const TestTensor src(DType::kInt32, {3, 2}, {1, 2, 3, 4, 5, 6});
  for (int threads : {1, 2}) {
    ExpectEqual(Op(OpId::scatter, Along(0), {x, index, src}, threads),
                {0, 4, 5, 6});
  }
}

TEST(IndexTest, ScatterOfANumber) {
  for (DType dtype : kTypes) {
    const TestTensor x = Random(dtype, {3, 4});
    const TestTensor index(DType::kInt64, {3, 1}, {2, 0, 3});
    std::vector<double> want = x.Values();
    want[2] = want[4] = want[11] = 1;
    const Attrs attrs =
        MakeAttrs(OpId::scatter,
                  {{"dim", AttrValue(int64_t{1})}, {"src", AttrValue(1.0)}});
    // The executor brings the number in the type of the computation.
    for (DType number_type : {dtype, DType::kFloat32}) {
      TestTensor out(dtype, {3, 4});
      TestContext context;
      ASSERT_TRUE(RunKernel(Cpu_scatter, context, attrs,
                            {x, index, TestTensor(number_type, {}, {1})}, {out})
                      .ok());
      ExpectEqual(out, want);
    }
  }
}

TEST(IndexTest, RankZero) {
  const TestTensor x(DType::kFloat32, {}, {5}), src(DType::kFloat32, {}, {7});
  const TestTensor zero(DType::kInt64, {}, {0}), one(DType::kInt64, {1}, {0});
  const TestTensor twice(DType::kInt64, {2}, {0, 0});
  ExpectEqual(Op(OpId::gather, Along(0), {x, zero}), {5});
  ExpectEqual(Op(OpId::gather, Along(0), {x, twice}), {5, 5});
  ExpectEqual(Op(OpId::index_select, Along(0), {x, one}), {5});
  ExpectEqual(Op(OpId::index_select, Along(0), {x, zero}), {5});
  ExpectEqual(Op(OpId::scatter, Along(0), {x, zero, src}), {7});
  ExpectEqual(Op(OpId::scatter_add, Along(0), {x, one, src}), {12});
  ExpectEqual(Op(OpId::index_add, Along(0), {x, one, src}), {12});
  const TestTensor v(DType::kFloat32, {3}, {1, 2, 3});
  const TestTensor two(DType::kInt64, {}, {2});
  ExpectEqual(Op(OpId::gather, Along(0), {v, two}), {3});
  ExpectEqual(Op(OpId::scatter, Along(0), {v, two, src}), {1, 2, 7});
  EXPECT_EQ(TryOp(OpId::gather, Along(0), {x, two}).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(IndexTest, EmptyIndices) {
  const TestTensor x = Random(DType::kFloat32, {3, 4});
  const TestTensor none(DType::kInt64, {0}), none2(DType::kInt64, {0, 4});
  EXPECT_EQ(Op(OpId::index_select, Along(0), {x, none}).numel(), 0);
  EXPECT_EQ(Op(OpId::gather, Along(0), {x, none2}).numel(), 0);
  ExpectEqual(Op(OpId::scatter_add, Along(0),
                 {x, none2, TestTensor(DType::kFloat32, {0, 4})}),
              x.Values());
  ExpectEqual(Op(OpId::index_add, Along(0),
                 {x, none, TestTensor(DType::kFloat32, {0, 4})}),
              x.Values());
}

TEST(IndexTest, IndicesOutOfRangeAreErrors) {
  const TestTensor x = Random(DType::kFloat32, {5, 4});
  const TestTensor src = Random(DType::kFloat32, {3, 4});
  for (double bad : {5.0, -1.0, 1e18, -1e18}) {
    TestTensor index = RandomIndex({3, 4}, 5);
    index.Set(6, bad);
    TestTensor vector = RandomIndex({3}, 5);
    vector.Set(1, bad);
    const std::string want =
        absl::StrCat("index ", static_cast<int64_t>(bad),
                     " is out of bounds for dimension 0 with size 5");
    const std::pair<OpId, std::vector<TestTensor>> calls[] = {
        {OpId::gather, {x, index}},
        {OpId::index_select, {x, vector}},
        {OpId::scatter, {x, index, src}},
        {OpId::scatter_add, {x, index, src}},
        {OpId::index_add, {x, vector, src}}};
    for (const auto& [op, inputs] : calls) {
      const absl::Status s = TryOp(op, Along(0), inputs, 2).status();
      EXPECT_EQ(s.code(), absl::StatusCode::kOutOfRange);
      EXPECT_NE(s.message().find(want), std::string::npos) << s;
      EXPECT_EQ(s.message().find(absl::StrCat("[", GetOp(op).name, "]")), 0);
    }
  }
}

TEST(IndexTest, FailedInPlaceOpLeavesItsTensor) {
  const TestTensor src = Random(DType::kFloat32, {3, 4});
  TestTensor index = RandomIndex({3, 4}, 5);
  index.Set(11, 5);  // the last one
  TestTensor vector = RandomIndex({3}, 5);
  vector.Set(2, -1);
  TestTensor x = Random(DType::kFloat32, {5, 4});
  const std::vector<double> before = x.Values();
  EXPECT_FALSE(OpInPlace(OpId::scatter, Along(0), {x, index, src}).ok());
  EXPECT_FALSE(OpInPlace(OpId::scatter_add, Along(0), {x, index, src}).ok());
  EXPECT_FALSE(OpInPlace(OpId::index_add, Along(0), {x, vector, src}).ok());
  ExpectEqual(x, before);
}

TEST(IndexTest, InPlaceOnAView) {
  const TestTensor base = Random(DType::kFloat64, {4, 10});
  const TestTensor x = base.Slice(1, 1, 9, 2).Transpose(0, 1);  // [4,4]
  const TestTensor copy(DType::kFloat64, {4, 4}, x.Values());
  const TestTensor index = RandomIndex({3, 4}, 4);
  const TestTensor src = Random(DType::kFloat64, {3, 4}, 9);
  const TestTensor want = Op(OpId::scatter_add, Along(0), {copy, index, src});
  ASSERT_TRUE(OpInPlace(OpId::scatter_add, Along(0), {x, index, src}).ok());
  ExpectEqual(x, want.Values());
}

TEST(IndexTest, ResultsDoNotDependOnThreads) {
  const TestTensor x = Random(DType::kFloat32, {40, 500});
  const TestTensor index = RandomIndex({300, 500}, 40);
  const TestTensor src = Random(DType::kFloat32, {300, 500}, 2);
  const TestTensor one = Op(OpId::scatter_add, Along(0), {x, index, src}, 1);
  for (int threads : {2, 3}) {
    ExpectSameBits(one,
                   Op(OpId::scatter_add, Along(0), {x, index, src}, threads));
  }
}

}  // namespace
}  // namespace holdfast::cpu
