// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cuSOLVER and cuBLAS as far as they go without a GPU: the functions are there,
// and what needs none can be made.
#include "kernels/cuda/dense_library.h"

#include <string>

#include "gtest/gtest.h"
#include "kernels/cuda/cuda_libraries.h"

namespace holdfast::cuda {
namespace {

class DenseLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status opened = OpenDense(&dense_);
    // A function that is missing is a fault of ours.
    if (!opened.ok() &&
        std::string(opened.message()).find("cannot be loaded") !=
            std::string::npos) {
      GTEST_SKIP() << opened.message();
    }
    ASSERT_TRUE(opened.ok()) << opened.message();
  }

  DenseLibrary dense_;
};

TEST_F(DenseLibraryTest, HasEveryFunction) {
#define X(function) EXPECT_NE(dense_.function, nullptr) << #function;
  HOLDFAST_TRIANGULAR_FUNCTIONS(X)
  HOLDFAST_SOLVER_FUNCTIONS(X)
#undef X
}

TEST_F(DenseLibraryTest, HandlesAreWholeOrNone) {
  const absl::Status made = dense_.MakeHandles();
  if (made.ok()) {
    EXPECT_NE(dense_.jacobi, nullptr);
    return;
  }
  // What went wrong is told, and nothing is left to be destroyed that is none.
  EXPECT_EQ(std::string(made.message()).rfind("[cuda] cublasCreate: ", 0), 0u)
      << made.message();
  EXPECT_EQ(dense_.blas, nullptr);
  EXPECT_EQ(dense_.solver, nullptr);
}

TEST_F(DenseLibraryTest, TellsWhatAStatusMeans) {
  EXPECT_TRUE(dense_.Told(CUSOLVER_STATUS_SUCCESS, "x").ok());
  EXPECT_TRUE(dense_.Told(CUBLAS_STATUS_SUCCESS, "x").ok());
  EXPECT_EQ(dense_.Told(CUSOLVER_STATUS_INVALID_VALUE, "potrf").message(),
            "[cuda] potrf: CUSOLVER_STATUS_INVALID_VALUE.");
  const absl::Status full = dense_.Told(CUBLAS_STATUS_ALLOC_FAILED, "trsm");
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  const std::string text(full.message());
  EXPECT_EQ(text.rfind("[cuda] trsm: ", 0), 0u) << text;
  EXPECT_NE(text.find(". Free tensors."), std::string::npos) << text;
}

}  // namespace
}  // namespace holdfast::cuda
