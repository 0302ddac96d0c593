// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of kernels: a context whose scratch memory is the heap, and a
// tensor that owns its data.
// Thread-safety: none; one test uses one.
#ifndef HOLDFAST_KERNELS_CPU_TEST_CONTEXT_H_
#define HOLDFAST_KERNELS_CPU_TEST_CONTEXT_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cpu/kernel_symbols.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/kernel.h"
#include "ops/attrs.h"
#include "ops/infer.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {

class TestContext : public KernelContext {
 public:
  explicit TestContext(int threads = 1) { num_threads = threads; }
  void* Scratch(size_t bytes) override {
    if (bytes > limit) return nullptr;
    const size_t rounded = (bytes + 63) / 64 * 64;
    blocks_.emplace_back(std::aligned_alloc(64, rounded + 64), &std::free);
    return blocks_.back().get();
  }

  size_t limit = size_t{1} << 40;  // larger requests fail

 private:
  std::vector<std::unique_ptr<void, void (*)(void*)>> blocks_;
};

// Elements read and written as double, which holds every value the tests use.
// Copies share the data (so Set is const): a view is a copy with another spec.
class TestTensor {
 public:
  TestTensor() = default;
  TestTensor(DType dtype, const Dims& shape)
      : spec_(ContiguousSpec(dtype, shape)) {
    const size_t bytes = spec_.nbytes() + 64;
    // Garbage first, so that a kernel that leaves an element is noticed.
    data_ = std::shared_ptr<char>(
        static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)),
        &std::free);
    std::fill_n(data_.get(), bytes, static_cast<char>(0x5a));
  }
  TestTensor(DType dtype, const Dims& shape, std::vector<double> values)
      : TestTensor(dtype, shape) {
    for (size_t i = 0; i < values.size(); ++i) Set(i, values[i]);
  }

  const TensorSpec& spec() const { return spec_; }
  int64_t numel() const { return spec_.numel(); }
  DType dtype() const { return spec_.dtype; }
  TensorView view() const {
    return {data_.get() + spec_.offset * ItemSize(spec_.dtype), &spec_};
  }
  template <typename T>
  T* data() const {
    return view().as<T>();
  }

  // The i-th element in row-major order of this view.
  double Get(int64_t i) const {
    return DispatchDType(spec_.dtype, [&](auto tag) -> double {
      using T = typename decltype(tag)::type;
      return static_cast<double>(LoadElement(data<T>() + Position(i)));
    });
  }
  void Set(int64_t i, double value) const {
    DispatchDType(spec_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      data<T>()[Position(i)] = static_cast<T>(value);
    });
  }
  std::vector<double> Values() const {
    std::vector<double> out(numel());
    for (size_t i = 0; i < out.size(); ++i) out[i] = Get(i);
    return out;
  }

  TestTensor Transpose(int a, int b) const {
    TestTensor t = *this;
    std::swap(t.spec_.shape[a], t.spec_.shape[b]);
    std::swap(t.spec_.strides[a], t.spec_.strides[b]);
    return t;
  }
  TestTensor Slice(int dim, int64_t start, int64_t end,
                   int64_t step = 1) const {
    TestTensor t = *this;
    t.spec_.offset += start * spec_.strides[dim];
    t.spec_.shape[dim] = (end - start + step - 1) / step;
    t.spec_.strides[dim] *= step;
    return t;
  }
  // Size-1 dimensions (and missing leading ones) repeated with stride 0.
  TestTensor Expand(const Dims& shape) const {
    TestTensor t = *this;
    t.spec_.shape = shape;
    t.spec_.strides.assign(shape.size(), 0);
    const int lead = static_cast<int>(shape.size()) - spec_.rank();
    for (int d = 0; d < spec_.rank(); ++d) {
      if (spec_.shape[d] == shape[lead + d]) {
        t.spec_.strides[lead + d] = spec_.strides[d];
      }
    }
    return t;
  }

 private:
  int64_t Position(int64_t i) const {
    int64_t position = 0;
    for (int d = spec_.rank() - 1; d >= 0; --d) {
      position += i % spec_.shape[d] * spec_.strides[d];
      i /= spec_.shape[d];
    }
    return position;
  }

  TensorSpec spec_;
  std::shared_ptr<char> data_;
};

// Calls a kernel on tensors; an absent optional input is a TestTensor with
// no data, `TestTensor()`.
inline absl::Status RunKernel(KernelFn kernel, KernelContext& context,
                              const Attrs& attrs,
                              const std::vector<TestTensor>& inputs,
                              const std::vector<TestTensor>& outputs) {
  std::vector<TensorView> in, out;
  for (const TestTensor& t : inputs) {
    in.push_back(t.view().data == nullptr ? TensorView{} : t.view());
  }
  for (const TestTensor& t : outputs) out.push_back(t.view());
  return kernel(context, attrs, in, out);
}

// Infers the outputs, allocates them and runs the kernel, as the executor
// does. In-place (`inplace`): the output is inputs[0] itself.
inline absl::StatusOr<std::vector<TestTensor>> RunOp(
    KernelFn kernel, KernelContext& context, const Attrs& attrs,
    const std::vector<TestTensor>& inputs, bool inplace = false) {
  const OpSchema& schema = attrs.schema();
  std::vector<const TensorSpec*> specs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int slot = schema.num_lists > 0
                         ? -1
                         : schema.params[schema.tensor_params[i]].attr_slot;
    const bool number = slot >= 0 && attrs.IsSet(slot);
    const bool absent = inputs[i].view().data == nullptr;
    specs.push_back(number || absent ? nullptr : &inputs[i].spec());
  }
  OutputSpecs inferred;
  absl::Status status = InferOp(attrs, specs, inplace, &inferred);
  if (!status.ok()) return status;
  std::vector<TestTensor> outputs;
  for (const OutputSpec& out : inferred) {
    outputs.push_back(inplace ? inputs[0]
                              : TestTensor(out.spec.dtype, out.spec.shape));
  }
  status = RunKernel(kernel, context, attrs, inputs, outputs);
  if (!status.ok()) return status;
  return outputs;
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_TEST_CONTEXT_H_
