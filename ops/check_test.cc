// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/check.h"

#include <cstddef>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using Vector = absl::InlinedVector<int, 4>;

// What the handler of a throwing call is told.
absl::Status Caught(const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    return CaughtStatus("add");
  }
  return absl::OkStatus();
}

// Not folded by the compiler.
ABSL_ATTRIBUTE_NOINLINE int At(absl::Span<const int> span, size_t i) {
  return span[i];
}
ABSL_ATTRIBUTE_NOINLINE int At(const Vector& vector, size_t i) {
  return vector[i];
}

TEST(CheckTest, SaysWhereItFailed) {
  HF_CHECK(1 + 1 == 2);
  const absl::Status status = Caught([] { HF_CHECK(1 + 1 == 3); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  const std::string text(status.message());
  EXPECT_NE(text.find("[add] a check failed in add at ops/check_test.cc:"),
            text.npos)
      << text;
  EXPECT_NE(text.find("1 + 1 == 3"), text.npos) << text;
  ASSERT_TRUE(status.GetPayload(kCheckFailedPayload).has_value());
  EXPECT_GT(status.GetPayload(kCheckFailedPayload)->size(), sizeof(void*));
}

TEST(CheckTest, BoundsThrow) {
  const std::vector<int> empty;
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { At(absl::MakeConstSpan(empty), 3); }, [] { At(Vector(2), 2); },
           [&] { absl::MakeConstSpan(empty).front(); },
           [] { absl::Span<int>().remove_prefix(1); },
           [] { Vector().back(); }}) {
    const absl::Status status = Caught(call);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_NE(status.message().find("absl/"), absl::string_view::npos)
        << status;
  }
  EXPECT_EQ(At(absl::MakeConstSpan(Vector{7, 8}), 1), 8);
}

TEST(CheckTest, AResultThatIsNotThereThrows) {
  const absl::StatusOr<int> none = absl::NotFoundError("nowhere");
  const absl::Status status = Caught([&] { static_cast<void>(*none); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("nowhere"), absl::string_view::npos);
}

TEST(CheckTest, ListsThatDoNotFitAreShortMemory) {
  volatile size_t huge = size_t{1} << 62;
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { std::vector<int>().resize(huge); },
           [&] { Vector().resize(huge); }, [] { throw std::bad_alloc(); }}) {
    EXPECT_EQ(Caught(call).code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(CheckTest, OtherExceptionsAreMistakesToo) {
  const absl::Status status =
      Caught([] { throw std::runtime_error("a library's"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("a library's"), absl::string_view::npos);
}

}  // namespace
}  // namespace holdfast
