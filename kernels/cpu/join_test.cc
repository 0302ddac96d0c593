// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cat, constant_pad, slice_backward, select_backward, flip, tril, triu.
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

const DType kTypes[] = {DType::kBool, DType::kUInt8, DType::kInt64,
                        DType::kFloat32};

AttrList Along(int64_t dim) { return {{"dim", AttrValue(dim)}}; }

TEST(JoinTest, CatEveryLayoutAndDimension) {
  for (DType dtype : kTypes) {
    for (int64_t dim : {0, 1, 2, -1}) {
      const int d = static_cast<int>(dim < 0 ? 2 : dim);
      for (const TestTensor& a : Layouts(dtype, 3, 4, 5)) {
        Dims shape = {3, 4, 5};
        shape[d] = 2;
        const TestTensor b = Random(dtype, shape, 2);
        const TestTensor got = Op(OpId::cat, Along(dim), {a, b, a}, 2);
        Dims out = {3, 4, 5};
        out[d] = 2 * out[d] + 2;
        ASSERT_EQ(got.spec().shape, out);
        for (int64_t i = 0; i < got.numel(); ++i) {
          Dims at = Unravel(i, out);
          const int64_t size = a.spec().shape[d];
          double want;
          if (at[d] < size) {
            want = a.Get(Ravel(at, a.spec().shape));
          } else if (at[d] < size + 2) {
            at[d] -= size;
            want = b.Get(Ravel(at, shape));
          } else {
            at[d] -= size + 2;
            want = a.Get(Ravel(at, a.spec().shape));
          }
          ASSERT_EQ(got.Get(i), want);
        }
      }
    }
  }
}

TEST(JoinTest, CatPromotesAndSkipsEmptyOnes) {
  const TestTensor ints(DType::kInt32, {2}, {1, 2});
  const TestTensor floats(DType::kFloat32, {1}, {0.5});
  const TestTensor none(DType::kFloat32, {0});
  const TestTensor got = Op(OpId::cat, Along(0), {ints, none, floats});
  EXPECT_EQ(got.dtype(), DType::kFloat32);
  ExpectEqual(got, {1, 2, 0.5});
  const TestTensor matrix = Random(DType::kFloat32, {2, 3});
  ExpectEqual(Op(OpId::cat, Along(1), {none, matrix}), matrix.Values());
  EXPECT_EQ(Op(OpId::cat, Along(0), {none, none}).numel(), 0);
}

TEST(JoinTest, CatOfLargeTensors) {
  const TestTensor a = Random(DType::kFloat32, {500, 400});
  const TestTensor got = Op(OpId::cat, Along(1), {a, a}, 2);
  for (int64_t i = 0; i < got.numel(); ++i) {
    ASSERT_EQ(got.Get(i), a.Get(i / 800 * 400 + i % 400));
  }
}

// Element by element, in one pass where types and layouts are alike.
TEST(JoinTest, CatOfPairs) {
  for (const DType type :
       {DType::kFloat32, DType::kInt64, DType::kUInt8, DType::kFloat64}) {
    for (const int64_t n : {1, 7, 40000}) {
      const TestTensor a = Random(type, {n, 1}, 1), b = Random(type, {n, 1}, 2);
      for (const TestTensor& other :
           {b, Random(DType::kFloat64, {n, 1}, 3),
            Random(type, {1, n}, 4).Transpose(0, 1)}) {
        const TestTensor got = Op(OpId::cat, Along(1), {a, other}, 2);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(got.Get(2 * i), a.Get(i));
          ASSERT_EQ(got.Get(2 * i + 1), other.Get(i));
        }
      }
    }
  }
}

TEST(JoinTest, PadAndCrop) {
  for (DType dtype : kTypes) {
    for (const Dims& pad :
         {Dims{1, 2}, Dims{0, 0}, Dims{1, 0, 2, 3}, Dims{-1, 2, -2, -1},
          Dims{0, -5}, Dims{1, 1, 1, 1, 1, 1}, Dims{}}) {
      for (const TestTensor& x : Layouts(dtype, 3, 4, 5)) {
        const AttrValue one =
            dtype == DType::kFloat32 ? AttrValue(1.0) : AttrValue(int64_t{1});
        const TestTensor got =
            Op(OpId::constant_pad, {{"pad", AttrValue(pad)}, {"value", one}},
               {x}, 2);
        const Dims& shape = got.spec().shape;
        for (int64_t i = 0; i < got.numel(); ++i) {
          Dims at = Unravel(i, shape);
          bool inside = true;
          for (size_t p = 0; p < pad.size() / 2; ++p) at[2 - p] -= pad[2 * p];
          for (int d = 0; d < 3; ++d) {
            inside &= at[d] >= 0 && at[d] < x.spec().shape[d];
          }
          ASSERT_EQ(got.Get(i), inside ? x.Get(Ravel(at, {3, 4, 5})) : 1);
        }
      }
    }
  }
}

TEST(JoinTest, SliceAndSelectBackward) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Dims size = {4, 9, 5};
    for (int64_t dim : {0, 1, 2}) {
      const int64_t start = 1, step = 2, n = (size[dim] - start + 1) / step;
      Dims shape = size;
      shape[dim] = n;
      const TestTensor grad = Random(dtype, shape);
      std::vector<double> want(NumElements(size));
      for (int64_t i = 0; i < grad.numel(); ++i) {
        Dims at = Unravel(i, shape);
        at[dim] = start + at[dim] * step;
        want[Ravel(at, size)] = grad.Get(i);
      }
      AttrList attrs = Along(dim);
      attrs.push_back({"input_size", AttrValue(size)});
      AttrList slice = attrs;
      slice.push_back({"start", AttrValue(start)});
      slice.push_back({"step", AttrValue(step)});
      ExpectEqual(Op(OpId::slice_backward, slice, {grad}, 2), want);

      Dims rest = size;
      rest.erase(rest.begin() + dim);
      const TestTensor part = Random(dtype, rest);
      std::fill(want.begin(), want.end(), 0);
      for (int64_t i = 0; i < part.numel(); ++i) {
        Dims at = Unravel(i, rest);
        at.insert(at.begin() + dim, 3);
        want[Ravel(at, size)] = part.Get(i);
      }
      attrs.push_back({"index", AttrValue(int64_t{3})});
      ExpectEqual(Op(OpId::select_backward, attrs, {part}), want);
    }
  }
  // An empty slice has a gradient of zeros.
  ExpectEqual(Op(OpId::slice_backward,
                 {{"dim", AttrValue(int64_t{0})},
                  {"input_size", AttrValue(Dims{3})},
                  {"start", AttrValue(int64_t{3})},
                  {"step", AttrValue(int64_t{1})}},
                 {TestTensor(DType::kFloat32, {0})}),
              {0, 0, 0});
}

TEST(RearrangeTest, FlipEveryLayout) {
  for (DType dtype : kTypes) {
    for (const Dims& dims :
         {Dims{0}, Dims{1}, Dims{2}, Dims{0, 2}, Dims{-1, 0, 1}, Dims{}}) {
      for (const TestTensor& x : Layouts(dtype, 3, 4, 5)) {
        const TestTensor got =
            Op(OpId::flip, {{"dims", AttrValue(dims)}}, {x}, 2);
        for (int64_t i = 0; i < got.numel(); ++i) {
          Dims at = Unravel(i, {3, 4, 5});
          for (int64_t d : dims) {
            const int64_t dim = d < 0 ? d + 3 : d;
            at[dim] = x.spec().shape[dim] - 1 - at[dim];
          }
          ASSERT_EQ(got.Get(i), x.Get(Ravel(at, {3, 4, 5})));
        }
      }
    }
  }
  const TestTensor scalar(DType::kFloat32, {}, {4});
  AttrList attrs = {{"dims", AttrValue(int64_t{0})}};
  ExpectEqual(Op(OpId::flip, attrs, {scalar}), {4});
}

TEST(RearrangeTest, TrianglesEveryLayoutAndDiagonal) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (DType dtype : kTypes) {
    for (int64_t diagonal : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{3},
                             int64_t{-3}, int64_t{100}, kMin, kMax}) {
      for (const TestTensor& x : Layouts(dtype, 2, 4, 5)) {
        std::vector<double> lower = x.Values(), upper = x.Values();
        for (int64_t i = 0; i < x.numel(); ++i) {
          const __int128 above = static_cast<__int128>(i % 5) - i / 5 % 4;
          (above > diagonal ? lower : upper)[i] = 0;
          if (above == diagonal) upper[i] = x.Get(i);
        }
        const AttrList attrs = {{"diagonal", AttrValue(diagonal)}};
        ExpectEqual(Op(OpId::tril, attrs, {x}, 2), lower);
        ExpectEqual(Op(OpId::triu, attrs, {x}, 2), upper);
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::cpu
