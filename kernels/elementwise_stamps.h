// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the rows of elementwise ops (X(name, types, expression)) are made into:
// a functor each, whose expression sees `a`, and `b` in binary ops, of type T.
#ifndef HOLDFAST_KERNELS_ELEMENTWISE_STAMPS_H_
#define HOLDFAST_KERNELS_ELEMENTWISE_STAMPS_H_

#include "ops/host_device.h"

#define HOLDFAST_DEFINE_FUNCTOR(name, types, result, operands, expression) \
  struct name {                                                            \
    using Types = types;                                                   \
    template <typename T>                                                  \
    using Result = result;                                                 \
    template <typename T>                                                  \
    static HOLDFAST_HD result Apply operands {                             \
      return expression;                                                   \
    }                                                                      \
  };
#define HOLDFAST_DEFINE_UNARY(name, types, expression) \
  HOLDFAST_DEFINE_FUNCTOR(name, types, T, (T a), expression)
#define HOLDFAST_DEFINE_BINARY(name, types, expression) \
  HOLDFAST_DEFINE_FUNCTOR(name, types, T, (T a, T b), expression)
#define HOLDFAST_DEFINE_UNARY_PREDICATE(name, types, expression) \
  HOLDFAST_DEFINE_FUNCTOR(name, types, bool, (T a), expression)
#define HOLDFAST_DEFINE_BINARY_PREDICATE(name, types, expression) \
  HOLDFAST_DEFINE_FUNCTOR(name, types, bool, (T a, T b), expression)

#endif  // HOLDFAST_KERNELS_ELEMENTWISE_STAMPS_H_
