// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the program lets a GPU's libraries do to its results
// (v1::SetNumerics): one choice per process, as in PyTorch. A session tells its
// daemon before the next op when the choice is another than it last told.
// Thread-safety: all functions from any thread.
#ifndef HOLDFAST_CLIENT_NUMERICS_H_
#define HOLDFAST_CLIENT_NUMERICS_H_

#include <atomic>
#include <cstdint>

namespace holdfast::client {

// A set of these.
using NumericsChoice = uint32_t;
inline constexpr NumericsChoice kMatmulTf32 = 1;
inline constexpr NumericsChoice kConvTf32 = 2;
inline constexpr NumericsChoice kDeterministic = 4;
inline constexpr NumericsChoice kBenchmark = 8;
inline constexpr NumericsChoice kWithoutCudnn = 16;
// PyTorch's, and every new session's on the daemon.
inline constexpr NumericsChoice kDefaultNumerics = kConvTf32;

inline std::atomic<NumericsChoice> g_numerics{kDefaultNumerics};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_NUMERICS_H_
