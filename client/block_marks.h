// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checksums of each block of an array: whether a program has written it is
// seen without a copy of it, which would take as much memory again. They are
// taken while the bytes are copied, so that memory is read once.
// Thread-safety: pure functions.
#ifndef HOLDFAST_CLIENT_BLOCK_MARKS_H_
#define HOLDFAST_CLIENT_BLOCK_MARKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::client {

// A block holds a whole number of elements of every type.
inline constexpr size_t kMarkedBlock = 4096;

// Of the blocks in order, the last one may be shorter. Marks are this
// process's: another may use other instructions.
using BlockMarks = std::vector<uint64_t>;

// Of at most kMarkedBlock bytes. That two blocks that differ have one mark is
// as good as never so (but somebody can construct two).
uint64_t MarkOf(const void* block, size_t size);

void TakeMarks(const void* from, size_t bytes, BlockMarks* marks);

// memcpy, with the marks of what was copied, also when somebody writes `from`
// meanwhile.
void CopyMarked(void* to, const void* from, size_t bytes, BlockMarks* marks);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_BLOCK_MARKS_H_
