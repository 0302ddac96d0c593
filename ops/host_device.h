// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HOLDFAST_HD marks small functions that host and device code share.
#ifndef HOLDFAST_OPS_HOST_DEVICE_H_
#define HOLDFAST_OPS_HOST_DEVICE_H_

#if defined(__CUDACC__)
#define HOLDFAST_HD __host__ __device__ __forceinline__
#else
// Always inlined, so that a loop compiled for AVX-512 gets AVX-512 bodies.
#define HOLDFAST_HD inline __attribute__((always_inline))
#endif

#endif  // HOLDFAST_OPS_HOST_DEVICE_H_
