// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that take long on one row, which no second thread can share: they
// look whether they are to stop, and leave off at once. Looks are counted, not
// timed.
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/op_testing.h"

namespace holdfast::cpu {
namespace {

constexpr int64_t kLong = int64_t{1} << 21;

// Counts looks, and stops the op at one of them.
class Looker : public Attendant {
 public:
  Looker(StopSignal* stop, int64_t last) : stop_(stop), last_(last) {
    waits_.store(true);
  }
  void Attend() override {
    if (looks_.fetch_add(1) + 1 == last_) {
      stop_->StopOne(1, absl::AbortedError("enough"));
    }
  }
  int64_t looks() const { return looks_.load(); }

 private:
  StopSignal* const stop_;
  const int64_t last_;
  std::atomic<int64_t> looks_{0};
};

struct LongOp {
  std::string name;
  int64_t least_looks;  // of a whole run on one thread
  std::function<absl::StatusOr<std::vector<TestTensor>>(int, StopSignal*)> run;
};

// Different numbers in no order.
TestTensor Mixed(DType dtype, const Dims& shape) {
  TestTensor t(dtype, shape);
  const int64_t n = t.numel();
  for (int64_t i = 0; i < n; ++i) {
    t.Set(i, static_cast<double>(i * 7919 % n));
  }
  return t;
}

LongOp Unary(const std::string& name, OpId id, const AttrList& list,
             int64_t least_looks, const TestTensor& x) {
  return {name, least_looks, [=](int threads, StopSignal* stop) {
            return TryOp(id, list, {x}, threads, stop);
          }};
}

const std::vector<LongOp>& LongOps() {
  static const auto* const ops = [] {
    const TestTensor row = Mixed(DType::kFloat32, {kLong});
    const TestTensor two = Mixed(DType::kFloat64, {2, kLong / 2});
    const TestTensor columns = Mixed(DType::kFloat32, {kLong / 4, 4});
    const TestTensor steps = Mixed(DType::kFloat32, {4096, 1, 100});
    const TestTensor labels = RandomIndex({1, 100}, 100);
    const AttrList last = {{"dim", int64_t{-1}}};
    auto* list = new std::vector<LongOp>{
        Unary("sort", OpId::sort, last, 40, row),
        Unary("sort of two rows", OpId::sort, last, 40, two),
        Unary("topk", OpId::topk,
              {{"k", int64_t{100000}}, {"dim", int64_t{-1}}}, 10, row),
        Unary("kthvalue", OpId::kthvalue,
              {{"k", int64_t{1000}}, {"dim", int64_t{-1}}}, 15, row),
        Unary("median", OpId::median, last, 15, row),
        Unary("mode", OpId::mode, last, 40, row),
        Unary("unique", OpId::unique, {{"inverse", true}}, 50, row),
        Unary("lexsort", OpId::lexsort, {}, 100, columns),
        Unary("cumsum", OpId::cumsum, {{"dim", int64_t{0}}}, 15, row),
        Unary("cumsum of columns", OpId::cumsum, {{"dim", int64_t{0}}}, 15,
              columns),
        Unary("cumprod", OpId::cumprod, {{"dim", int64_t{0}}}, 15, row),
        Unary("logcumsumexp", OpId::logcumsumexp, {{"dim", int64_t{0}}}, 15,
              row),
        Unary("cummax", OpId::cummax, {{"dim", int64_t{0}}}, 15, row),
        {"linear_scan", 15,
         [row](int threads, StopSignal* stop) {
           return TryOp(OpId::linear_scan, {{"dim", int64_t{0}}}, {row, row},
                        threads, stop);
         }},
        {"randperm", 50,
         [](int threads, StopSignal* stop) {
           return TryOp(OpId::randperm, {{"n", kLong}}, {}, threads, stop);
         }},
        {"ctc_loss", 10,
         [=](int threads, StopSignal* stop) {
           return TryOp(OpId::ctc_loss, {{"blank", int64_t{0}}},
                        {steps, labels, TestTensor(DType::kInt64, {1}, {4096}),
                         TestTensor(DType::kInt64, {1}, {100})},
                        threads, stop);
         }},
    };
    return list;
  }();
  return *ops;
}

class StopTest : public testing::TestWithParam<size_t> {};

TEST_P(StopTest, ItLooksOftenAndLeavesOffAtOnce) {
  const LongOp& op = LongOps()[GetParam()];
  for (const int threads : {1, 2}) {
    SCOPED_TRACE(op.name + ", threads " + std::to_string(threads));
    StopSignal stop;
    Looker all(&stop, -1);
    stop.set_attendant(&all);
    stop.Begin(1);
    auto whole = op.run(threads, &stop);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_GE(all.looks(), op.least_looks);

    // The result is that of a run that nobody can stop.
    auto alone = op.run(1, nullptr);
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (size_t i = 0; i < whole->size(); ++i) {
      const TestTensor &got = (*whole)[i], &want = (*alone)[i];
      ASSERT_EQ(got.spec(), want.spec());
      EXPECT_EQ(
          std::memcmp(got.view().data, want.view().data, want.spec().nbytes()),
          0)
          << "output " << i;
    }

    // Each thread may be about to look, and loops that follow look once.
    StopSignal other;
    Looker few(&other, all.looks() / 2);
    other.set_attendant(&few);
    other.Begin(1);
    const auto stopped = op.run(threads, &other);
    EXPECT_LT(few.looks(), all.looks() / 2 + 10 * threads);
    (void)stopped;  // whatever it is, the caller drops it
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, StopTest,
                         testing::Range(size_t{0}, LongOps().size()));

}  // namespace
}  // namespace holdfast::cpu
