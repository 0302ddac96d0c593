// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// State files: what is written comes back; whatever is changed or missing is
// found, wherever it is.
#include "server/state/state_file.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/state_folder.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

class StateFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/state-" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/00000001.tensors";
  }
  static std::string Bytes(size_t size, int seed) {
    std::string bytes(size, '\0');
    std::iota(bytes.begin(), bytes.end(), seed);
    return bytes;
  }
  void Write(const std::vector<std::string>& blobs) {
    absl::StatusOr<StateFileWriter> file = StateFileWriter::Create(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const std::string& blob : blobs) {
      const absl::Status status = file->AddBlob(
          blob.size(), [&](uint64_t offset, size_t, const char** data) {
            *data = blob.data() + offset;
            return absl::OkStatus();
          });
      ASSERT_TRUE(status.ok()) << status;
    }
    state::Header header;
    header.mutable_name()->mutable_published()->set_name("model");
    ASSERT_TRUE(file->Finish(header).ok());
  }
  // All of the file; an error wherever one shows.
  absl::StatusOr<std::vector<std::string>> Read() const {
    absl::StatusOr<StateFileReader> file = StateFileReader::Open(path_);
    if (!file.ok()) return file.status();
    std::vector<std::string> blobs;
    for (int i = 0; i < file->header().blobs_size(); ++i) {
      std::string& blob = blobs.emplace_back();
      const absl::Status status = file->ReadBlob(
          i, nullptr, [&](uint64_t offset, absl::string_view piece) {
            EXPECT_EQ(offset, blob.size());
            blob.append(piece.data(), piece.size());
            return absl::OkStatus();
          });
      if (!status.ok()) return status;
    }
    return blobs;
  }
  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetContents(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string folder_, path_;
};

TEST_F(StateFileTest, WhatIsWrittenComesBack) {
  const std::vector<std::string> blobs = {
      Bytes(5, 1), "", Bytes(4096, 2),
      Bytes(2 * StateFileWriter::kPiece + 7, 3)};
  Write(blobs);
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, blobs);
  const auto file = StateFileReader::Open(path_);
  EXPECT_EQ(file->header().name().published().name(), "model");
  for (const state::Blob& blob : file->header().blobs()) {
    EXPECT_EQ(blob.offset() % 4096, 0);
  }
}

TEST_F(StateFileTest, EveryCutIsFound) {
  Write({Bytes(100, 1), Bytes(50, 2)});
  const std::string whole = Contents();
  for (size_t size = 0; size < whole.size(); ++size) {
    SetContents(whole.substr(0, size));
    ASSERT_TRUE(absl::IsDataLoss(Read().status())) << size;
  }
}

TEST_F(StateFileTest, EveryChangedByteThatCountsIsFound) {
  Write({Bytes(100, 1), Bytes(50, 2)});
  const std::string whole = Contents();
  const auto untouched = Read();
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] ^= 0x20;
    SetContents(changed);
    const auto read = Read();
    if (read.ok()) {
      // A gap between blobs.
      ASSERT_EQ(*read, *untouched) << at;
      ASSERT_EQ(whole[at], '\0') << at;
    } else {
      ASSERT_TRUE(absl::IsDataLoss(read.status())) << at;
      ASSERT_THAT(std::string(read.status().message()), HasSubstr(path_));
    }
  }
}

TEST_F(StateFileTest, AFolderBelongsToOne) {
  auto folder = StateFolder::Open(folder_ + "/state");
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto other = StateFolder::Open(folder_ + "/state");
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status()));
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("another holdfastd"));
  folder->reset();
  EXPECT_TRUE(StateFolder::Open(folder_ + "/state").ok());
}

TEST_F(StateFileTest, ScanFindsWholeFilesAndSetsOthersAside) {
  auto folder = StateFolder::Open(folder_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  Write({Bytes(10, 1)});
  std::ofstream(folder_ + "/00000007.tensors") << "HFSTATE1";
  std::ofstream(folder_ + "/00000008.tensors.tmp") << "HFSTATE1";
  std::ofstream(folder_ + "/notes.txt") << "mine";
  const auto files = (*folder)->Scan();
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ((*files)[0].path, path_);
  EXPECT_EQ((*files)[0].bytes(), 10u);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/00000007.tensors.damaged"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/00000008.tensors.tmp"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/notes.txt"));
  // Numbers are not used again.
  EXPECT_THAT((*folder)->NewPath(), HasSubstr("00000008.tensors"));
}

}  // namespace
}  // namespace holdfast
