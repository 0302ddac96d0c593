// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops computed the obvious way in double precision, for testing gradient rules
// without a kernel in sight. Test code: speed does not matter.
// Thread-safety: pure functions.
#ifndef HOLDFAST_AUTOGRAD_REFERENCE_OPS_H_
#define HOLDFAST_AUTOGRAD_REFERENCE_OPS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "ops/attrs.h"
#include "ops/op_schema.h"
#include "ops/tensor_spec.h"

namespace holdfast {

// Elements in row-major order. Integers and bools are doubles too.
struct Dense {
  Dims shape;
  std::vector<double> v;
  bool present = true;

  Dense() : present(false) {}
  explicit Dense(Dims s, double fill = 0.0)
      : shape(std::move(s)), v(NumElements(shape), fill) {}
  int rank() const { return static_cast<int>(shape.size()); }
  // The element at `index`; a longer index broadcasts.
  double& at(const Dims& index);
  double at(const Dims& index) const {
    return const_cast<Dense*>(this)->at(index);
  }
};

// Calls `f` with every index into `shape`, in row-major order.
void ForEachIndex(const Dims& shape, const std::function<void(const Dims&)>& f);

// `out` has the inferred shapes, filled with zeros. Numbers given for operands
// arrive as rank-0 inputs. False: no reference for this op.
bool ComputeReference(const Attrs& attrs, const std::vector<Dense>& in,
                      std::vector<Dense>& out);

// The families; each returns false for the others' ops.
bool ComputeElementwise(const Attrs& attrs, const std::vector<Dense>& in,
                        std::vector<Dense>& out);
bool ComputeReduction(const Attrs& attrs, const std::vector<Dense>& in,
                      std::vector<Dense>& out);
bool ComputeOrdered(const Attrs& attrs, const std::vector<Dense>& in,
                    std::vector<Dense>& out);
bool ComputeIndexing(const Attrs& attrs, const std::vector<Dense>& in,
                     std::vector<Dense>& out);
bool ComputeProduct(const Attrs& attrs, const std::vector<Dense>& in,
                    std::vector<Dense>& out);
bool ComputePooling(const Attrs& attrs, const std::vector<Dense>& in,
                    std::vector<Dense>& out);
bool ComputeSoftmax(const Attrs& attrs, const std::vector<Dense>& in,
                    std::vector<Dense>& out);

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_REFERENCE_OPS_H_
