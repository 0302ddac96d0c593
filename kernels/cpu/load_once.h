// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// LoadOnce: reads an index from tensor memory exactly once. Tensors lie in
// memory that their client shares and may write at any time: an index must be
// checked and used from one and the same load, and an ordinary one is a load
// that the compiler may repeat.
// Thread-safety: pure function.
#ifndef HOLDFAST_KERNELS_CPU_LOAD_ONCE_H_
#define HOLDFAST_KERNELS_CPU_LOAD_ONCE_H_

namespace holdfast::cpu {

template <typename T>
inline T LoadOnce(const T* p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_LOAD_ONCE_H_
