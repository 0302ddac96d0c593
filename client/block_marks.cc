// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/block_marks.h"

#include <algorithm>
#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace holdfast::client {
namespace {

enum class Copy { kNone, kCached, kStreamed };

#ifdef __x86_64__

// A round of AES is a bijection of its state and takes half a cycle, so that
// reading the memory is what takes the time. After two rounds what one byte
// changed has changed all 16: nothing that a program does to another element
// takes it back. A sum of products would be as fast, but does not see that the
// signs of two elements changed.
constexpr int kLanes = 8;
constexpr size_t kStrip = kLanes * sizeof(__m128i);

const bool kHasAes = __builtin_cpu_supports("aes") != 0;

template <int kCount>
__attribute__((target("aes"), always_inline)) inline __m128i Rounds(
    __m128i state) {
  for (int i = 0; i < kCount; ++i) {
    state = _mm_aesenc_si128(state, _mm_set1_epi32(0x5bd1e995));
  }
  return state;
}

// The bytes that are marked are those that are stored: each is loaded once.
template <Copy kCopy>
__attribute__((target("aes"), always_inline)) inline void Strip(
    const char* from, char* to, __m128i* lanes) {
  for (int i = 0; i < kLanes; ++i) {
    const auto bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
    auto* const place = reinterpret_cast<__m128i*>(to) + i;
    if (kCopy == Copy::kCached) _mm_storeu_si128(place, bytes);
    if (kCopy == Copy::kStreamed) _mm_stream_si128(place, bytes);
    lanes[i] = Rounds<1>(_mm_aesenc_si128(lanes[i], bytes));
  }
}

template <Copy kCopy>
__attribute__((target("aes"))) uint64_t MarkWithAes(const char* from, char* to,
                                                    size_t size) {
  __m128i lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = _mm_set1_epi32(i);
  size_t at = 0;
  for (; at + kStrip <= size; at += kStrip) {
    Strip<kCopy>(from + at, to + at, lanes);
  }
  if (at < size) {
    char rest[kStrip] = {};
    std::memcpy(rest, from + at, size - at);
    Strip<Copy::kNone>(rest, rest, lanes);
    if (kCopy != Copy::kNone) std::memcpy(to + at, rest, size - at);
  }
  __m128i mark = _mm_set1_epi32(kLanes);
  for (const __m128i& lane : lanes) {
    mark = Rounds<3>(_mm_xor_si128(mark, lane));
  }
  return static_cast<uint64_t>(_mm_cvtsi128_si64(mark));
}

#endif

uint64_t MarkPlainly(const char* from, size_t size) {
  return absl::HashOf(absl::string_view(from, size));
}

template <Copy kCopy>
uint64_t Mark(const char* from, char* to, size_t size) {
#ifdef __x86_64__
  if (kHasAes) return MarkWithAes<kCopy>(from, to, size);
#endif
  if (kCopy == Copy::kNone) return MarkPlainly(from, size);
  std::memcpy(to, from, size);
  return MarkPlainly(to, size);
}

template <Copy kCopy>
void MarkBlocks(const char* from, char* to, size_t bytes, BlockMarks* marks) {
  marks->resize((bytes + kMarkedBlock - 1) / kMarkedBlock);
  size_t at = 0;
  for (uint64_t& mark : *marks) {
    const size_t size = std::min(kMarkedBlock, bytes - at);
    mark = Mark<kCopy>(from + at, to + at, size);
    at += size;
  }
}

}  // namespace

uint64_t MarkOf(const void* block, size_t size) {
  return Mark<Copy::kNone>(static_cast<const char*>(block), nullptr, size);
}

void TakeMarks(const void* from, size_t bytes, BlockMarks* marks) {
  MarkBlocks<Copy::kNone>(static_cast<const char*>(from), nullptr, bytes,
                          marks);
}

void CopyMarked(void* to, const void* from, size_t bytes, BlockMarks* marks) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
#ifdef __x86_64__
  // What does not fit into the caches passes them by, as memcpy has it.
  constexpr size_t kMuch = 16 << 20;
  const bool aligned = reinterpret_cast<uintptr_t>(to) % sizeof(__m128i) == 0;
  if (bytes >= kMuch && aligned) {
    MarkBlocks<Copy::kStreamed>(source, target, bytes, marks);
    _mm_sfence();
    return;
  }
#endif
  MarkBlocks<Copy::kCached>(source, target, bytes, marks);
}

}  // namespace holdfast::client
