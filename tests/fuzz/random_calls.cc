// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/random_calls.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "ops/op_id.h"
#include "proto/convert.h"

namespace holdfast {
namespace {

// Larger results are looked at and given up: a program is to take no time.
constexpr int64_t kMostElements = 4096;
constexpr int kMostTensors = 24;

constexpr DType kAll[] = {
    DType::kBool,    DType::kUInt8,   DType::kInt8,      DType::kInt16,
    DType::kInt32,   DType::kInt64,   DType::kFloat16,   DType::kBFloat16,
    DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128};

using Words = std::vector<std::string>;

// What the parameter of that name takes, in some op at least.
const Words& WordsFor(const std::string& param) {
  static const auto& by_name = *new std::map<std::string, Words>{
      {"reduce", {"sum", "prod", "mean", "amax", "amin"}},
      {"reduction", {"none", "mean", "sum"}},
      {"approximate", {"none", "tanh"}},
      {"padding_mode", {"zeros", "border", "reflection"}},
      {"mode",
       {"nearest", "linear", "cubic", "area", "lstm", "gru", "tanh", "relu",
        "bilinear", "nearest-exact"}},
      {"op",
       {"relu", "leaky_relu", "elu", "hardswish", "hardsigmoid", "hardtanh",
        "hardshrink", "softshrink", "threshold", "softsign", "huber", "tanh",
        "sigmoid", "abs", "square", "gelu", "silu", "mish", "softplus"}},
      {"algorithm",
       {"sgd", "adam", "adamw", "rmsprop", "rprop", "asgd", "adamax", "nadam",
        "radam", "adagrad", "adadelta", "amsgrad"}},
      {"function",
       {"digamma", "bessel_j0", "bessel_j1", "i0", "i0e", "i1", "erfcx",
        "ndtri", "log_ndtr", "airy_ai"}}};
  static const auto& others = *new Words{"", "x", "mean", "sum", "none"};
  const auto found = by_name.find(param);
  return found == by_name.end() ? others : found->second;
}

// Sizes of a tensor by the letters of the sizes that belong together: random
// ones would hardly ever fit. The first rows that fit both names count.
struct Recipe {
  const char* op;     // its name begins so
  const char* param;  // "": any other
  const char* sizes;
};
constexpr Recipe kRecipes[] = {{"conv2d_backward", "grad", "noss"},
                               {"conv2d_backward", "input", "ncss"},
                               {"conv2d", "input", "ncss"},
                               {"conv2d", "weight", "ockk"},
                               {"conv2d", "bias", "o"},
                               {"conv3d_backward", "grad", "nosss"},
                               {"conv3d_backward", "input", "ncsss"},
                               {"conv3d", "input", "ncsss"},
                               {"conv3d", "weight", "ockkk"},
                               {"conv3d", "bias", "o"},
                               {"max_pool", "", "ncss"},
                               {"avg_pool", "", "ncss"},
                               {"adaptive_", "", "ncss"},
                               {"im2col", "", "ncss"},
                               {"col2im", "", "ncs"},
                               {"resample2d", "", "ncss"},
                               {"grid_sample", "input", "ncss"},
                               {"grid_sample", "grid", "nss2"},
                               {"linear", "input", "nc"},
                               {"linear", "weight", "oc"},
                               {"linear", "bias", "o"},
                               {"linalg_cross", "", "n3"},
                               {"linalg_", "pivots", "s"},
                               {"linalg_", "B", "sc"},
                               {"linalg_", "", "ss"},
                               {"matmul", "input", "nss"},
                               {"matmul", "other", "ss"},
                               {"fft_", "", "ns"},
                               {"batch_norm", "input", "ncs"},
                               {"batch_norm", "", "c"},
                               {"scaled_dot", "", "ncss"},
                               {"attention", "", "ncss"},
                               {"embedding", "weight", "sc"},
                               {"nll_loss", "input", "nc"},
                               {"nll_loss", "target", "n"},
                               {"cross_entropy", "input", "nc"},
                               {"cross_entropy", "target", "n"}};

constexpr int64_t kAbsurd[] = {-1,
                               -2,
                               7,
                               20,
                               1000,
                               int64_t{1} << 31,
                               -(int64_t{1} << 31),
                               int64_t{1} << 40,
                               int64_t{1} << 62,
                               std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min()};

int64_t Elements(const Dims& shape) {
  int64_t n = 1;
  for (const int64_t size : shape) {
    if (size < 0 || size > (int64_t{1} << 40) || n > (int64_t{1} << 20)) {
      return int64_t{1} << 60;
    }
    n *= size;
  }
  return n;
}

void AppendElement(DType dtype, double value, std::string* bytes) {
  const auto put = [&](auto number) {
    bytes->append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  // Casts of what does not fit are not defined.
  const double whole = value == value ? std::clamp(value, -100.0, 100.0) : 0.0;
  switch (dtype) {
    case DType::kBool:
      return put(static_cast<uint8_t>(value != 0));
    case DType::kUInt8:
      return put(static_cast<uint8_t>(whole < 0 ? 0 : whole));
    case DType::kInt8:
      return put(static_cast<int8_t>(whole));
    case DType::kInt16:
      return put(static_cast<int16_t>(whole));
    case DType::kInt32:
      return put(static_cast<int32_t>(whole));
    case DType::kInt64:
      return put(static_cast<int64_t>(whole));
    case DType::kFloat16:
      return put(static_cast<uint16_t>(value == 0 ? 0 : 0x3c00));
    case DType::kBFloat16: {
      const float f = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &f, sizeof bits);
      return put(static_cast<uint16_t>(bits >> 16));
    }
    case DType::kFloat32:
      return put(static_cast<float>(value));
    case DType::kFloat64:
      return put(value);
    case DType::kComplex64:
      put(static_cast<float>(value));
      return put(1.0f);
    case DType::kComplex128:
      put(value);
      return put(-1.0);
  }
}

bool MeansIndex(absl::string_view name) {
  return absl::StrContains(name, "ind") || absl::StrContains(name, "target") ||
         absl::StrContains(name, "length") || name == "boundaries";
}

}  // namespace

bool RandomProgram::Send(const v1::Command& command) {
  if (!ended_ && !target_->Apply(command)) ended_ = true;
  return !ended_;
}

Dims RandomProgram::ShapeFor(const OpSchema& op, const OpParam& param) {
  if (random_.Percent(75)) {
    for (const Recipe& recipe : kRecipes) {
      if (!absl::StartsWith(op.name, recipe.op) ||
          (*recipe.param != '\0' && param.name != recipe.param)) {
        continue;
      }
      Dims shape;
      for (const char* letter = recipe.sizes; *letter != '\0'; ++letter) {
        const bool digit = *letter >= '0' && *letter <= '9';
        shape.push_back(digit ? *letter - '0' : sizes_[*letter - 'a']);
      }
      if (random_.Percent(10) && !shape.empty()) {
        shape[random_.Below(shape.size())] = random_.Between(0, 3);
      }
      return shape;
    }
  }
  return Shape();
}

Dims RandomProgram::Shape() {
  const auto fresh = [&] {
    static constexpr int kRanks[] = {0, 0, 1, 1, 1, 1, 2, 2, 2,
                                     2, 3, 3, 3, 4, 4, 4, 5, 6};
    const int rank = kRanks[random_.Below(std::size(kRanks))];
    Dims shape;
    for (int i = 0; i < rank; ++i) {
      static constexpr int64_t kSizes[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5};
      shape.push_back(rank > 4 ? random_.Between(1, 3)
                               : kSizes[random_.Below(std::size(kSizes))]);
    }
    return shape;
  };
  if (calls_ == 0 && pool_.empty()) base_ = fresh();
  // Many ops take a number for a vector of one.
  if (base_.empty() && random_.Percent(40)) return {1};
  if (base_ == Dims{1} && random_.Percent(40)) return {};
  Dims shape = base_;
  switch (random_.Below(12)) {
    case 0:
      return {};
    case 1:
      return {1};
    case 2:
      return fresh();
    case 3:
      if (!shape.empty()) shape[random_.Below(shape.size())] = 1;
      return shape;
    case 4:
      if (!shape.empty()) shape[random_.Below(shape.size())] = 0;
      return shape;
    case 5:
      if (!shape.empty()) shape.erase(shape.begin());
      return shape;
    case 6:
      if (!shape.empty()) shape[random_.Below(shape.size())] += 1;
      return shape;
    case 7:
      if (!shape.empty()) return {shape[random_.Below(shape.size())]};
      return shape;
    default:
      return shape;
  }
}

DType RandomProgram::AnyDType() {
  const uint64_t draw = random_.Below(100);
  if (draw < 60) return DType::kFloat32;
  if (draw < 75) return DType::kFloat64;
  return kAll[random_.Below(std::size(kAll))];
}

DType RandomProgram::DTypeFor(const OpParam& param, bool first) {
  // A list of a tensor and its indices.
  if (param.name == "tensors" && !first && random_.Percent(80)) {
    return DType::kInt64;
  }
  if (MeansIndex(param.name) && random_.Percent(80)) return DType::kInt64;
  if (absl::StrContains(param.name, "mask") && random_.Percent(70)) {
    return DType::kBool;
  }
  return random_.Percent(85) ? dtype_ : AnyDType();
}

Known RandomProgram::Look(uint64_t handle) {
  v1::Command command;
  v1::Read* read = command.mutable_read();
  read->set_id(++read_id_);
  read->set_handle(handle);
  read->set_spec_only(true);
  if (!Send(command)) return {};
  const v1::ReadResult& result = target_->last_read();
  if (result.id() != read_id_ || !result.has_spec()) return {};
  Known known;
  known.handle = handle;
  known.dtype = static_cast<DType>(result.spec().dtype());
  known.shape.assign(result.spec().shape().begin(),
                     result.spec().shape().end());
  return known;
}

Known RandomProgram::Put(DType dtype, const Dims& shape, bool leaf) {
  v1::Command command;
  v1::Put* put = command.mutable_put();
  const uint64_t handle = next_handle_++;
  put->set_handle(handle);
  put->mutable_spec()->set_dtype(static_cast<v1::DType>(dtype));
  for (const int64_t size : shape) put->mutable_spec()->add_shape(size);
  const int64_t elements = Elements(shape);
  const bool raw = random_.Percent(2);
  for (int64_t i = 0; i < elements; ++i) {
    static constexpr double kRare[] = {
        1e30,
        -1e30,
        0.5,
        -0.5,
        std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()};
    const double value = random_.Percent(4)
                             ? kRare[random_.Below(std::size(kRare))]
                             : static_cast<double>(random_.Between(-2, 4));
    const size_t before = put->data().size();
    AppendElement(dtype, value, put->mutable_data());
    if (!raw) continue;
    for (size_t at = before; at < put->data().size(); ++at) {
      (*put->mutable_data())[at] = static_cast<char>(random_.Next());
    }
  }
  if (!Send(command)) return {};
  live_.push_back(handle);
  Known known{handle, dtype, shape, false};
  if (leaf && IsDifferentiable(dtype)) {
    v1::Command mark;
    mark.mutable_set_requires_grad()->set_handle(handle);
    mark.mutable_set_requires_grad()->set_requires_grad(true);
    Send(mark);
    known.leaf = true;
  }
  pool_.push_back(known);
  return known;
}

Known RandomProgram::Call(
    OpId op, std::initializer_list<uint64_t> inputs,
    const std::vector<std::pair<const char*, AttrValue>>& attrs, bool record) {
  Attrs values(&GetOp(op));
  for (const auto& [name, value] : attrs) values.Set(name, value);
  v1::Command command;
  v1::OpCall* call = command.mutable_op();
  call->set_op(static_cast<uint32_t>(op));
  for (const uint64_t input : inputs) call->add_inputs(input);
  AttrsToProto(values, call->mutable_attrs());
  call->set_record(record);
  const uint64_t handle = next_handle_;
  next_handle_ += GetOp(op).num_outputs;
  call->set_outputs(handle);
  if (!Send(command)) return {};
  live_.push_back(handle);
  return Look(handle);
}

Known RandomProgram::ViewOf(const Known& tensor) {
  const int rank = static_cast<int>(tensor.shape.size());
  const auto dim = [&] {
    return AttrValue(int64_t{rank == 0 ? 0 : random_.Between(-rank, rank - 1)});
  };
  Known view;
  switch (random_.Below(6)) {
    case 0:
      view = Call(OpId::transpose, {tensor.handle},
                  {{"dim0", dim()}, {"dim1", dim()}}, true);
      break;
    case 1:
      view = Call(OpId::slice, {tensor.handle},
                  {{"dim", dim()},
                   {"start", random_.Between(-2, 2)},
                   {"end", random_.Between(0, 5)},
                   {"step", random_.Between(1, 2)}},
                  true);
      break;
    case 2: {
      Dims size = tensor.shape;
      size.insert(size.begin(), random_.Between(0, 3));
      for (int64_t& one : size) {
        if (one == 1) one = random_.Between(1, 3);
      }
      view = Call(OpId::expand, {tensor.handle}, {{"size", size}}, true);
      break;
    }
    case 3:
      view = Call(OpId::unsqueeze, {tensor.handle}, {{"dim", dim()}}, true);
      break;
    case 4:
      view = Call(OpId::select, {tensor.handle},
                  {{"dim", dim()}, {"index", random_.Between(-1, 1)}}, true);
      break;
    default:
      view = Call(
          OpId::as_strided, {tensor.handle},
          {{"size", Shape()}, {"stride", Dims(rank, random_.Between(0, 2))}},
          true);
      break;
  }
  return view.handle == 0 ? tensor : view;
}

Known RandomProgram::Tensor(const OpSchema& op, const OpParam& param,
                            bool first) {
  Known tensor;
  if (!pool_.empty() && random_.Percent(25)) {
    tensor = random_.Pick(pool_);
  } else {
    const DType dtype = DTypeFor(param, first);
    tensor =
        Put(dtype, ShapeFor(op, param), !param.mutated && random_.Percent(70));
  }
  if (tensor.handle != 0 && random_.Percent(20)) tensor = ViewOf(tensor);
  return tensor;
}

int64_t RandomProgram::Integer(absl::string_view name) {
  if (random_.Percent(5)) return kAbsurd[random_.Below(std::size(kAbsurd))];
  if (absl::StrContains(name, "dim")) {
    const int64_t rank = static_cast<int64_t>(base_.size());
    return random_.Between(-rank - 1, rank);
  }
  if (random_.Percent(80)) {
    // What windows are made of.
    if (name == "kernel_size") return random_.Between(1, 3);
    if (name == "stride" || name == "dilation") return random_.Between(1, 2);
    if (name == "padding") return random_.Between(0, 1);
    if (name == "groups" || name == "divisor_override") return 1;
    if (absl::EndsWith(name, "_size")) return random_.Between(1, 5);
  }
  return random_.Between(-1, 4);
}

double RandomProgram::Number() {
  static constexpr double kNumbers[] = {
      0.0,
      1.0,
      0.5,
      -1.5,
      2.0,
      1e-6,
      1e30,
      -1e30,
      0.999,
      std::numeric_limits<double>::infinity(),
      std::numeric_limits<double>::quiet_NaN()};
  return kNumbers[random_.Below(std::size(kNumbers))];
}

AttrValue RandomProgram::Attribute(const OpSchema& op, const OpParam& param) {
  if (param.nullable && random_.Percent(20)) return std::monostate();
  switch (param.kind) {
    case ParamKind::kInt:
      return Integer(param.name);
    case ParamKind::kInts: {
      if (absl::StrContains(param.name, "size") && random_.Percent(40)) {
        return Shape();
      }
      Dims values;
      if (param.repeat > 0 && random_.Percent(60)) {
        return Dims{Integer(param.name)};
      }
      if (param.name == "dims" && random_.Percent(70)) {
        // One after the other, as the op's list of indices has them.
        for (int64_t i = 1; i < in_list_; ++i) values.push_back(i - 1);
        return values;
      }
      const int64_t most = random_.Percent(3) ? kMaxListLength : 4;
      for (int64_t n = random_.Between(0, most); n > 0; --n) {
        values.push_back(Integer(param.name));
      }
      return values;
    }
    case ParamKind::kFloat:
      return Number();
    case ParamKind::kBool:
      return random_.Percent(50);
    case ParamKind::kStr:
      if (random_.Percent(20) && !IsNone(param.default_value)) {
        return param.default_value;
      }
      if (random_.Percent(5)) return op.name;
      return random_.Pick(WordsFor(random_.Percent(95) ? param.name : ""));
    case ParamKind::kDType:
      return kAll[random_.Below(std::size(kAll))];
    case ParamKind::kScalar:
    default:
      if (random_.Percent(50)) return Number();
      if (random_.Percent(20)) return random_.Percent(50);
      return Integer(param.name);
  }
}

std::vector<Known> RandomProgram::CallOp(const OpSchema& op) {
  ++calls_;
  v1::Command command;
  v1::OpCall* call = command.mutable_op();
  call->set_op(static_cast<uint32_t>(op.id));
  call->set_record(random_.Percent(85));
  call->set_inplace(op.has(kInplaceOnly) ||
                    (op.has(kInplace) && random_.Percent(25)));
  Attrs attrs(&op);
  dtype_ = AnyDType();
  in_list_ = random_.Between(random_.Percent(5) ? 0 : 1, 3);
  for (int64_t& size : sizes_) {
    size = random_.Percent(4) ? 0 : random_.Between(1, 3);
  }
  sizes_['s' - 'a'] = random_.Between(2, 5);
  bool first = true;
  for (const OpParam& param : op.params) {
    if (param.tensor_slot >= 0) {
      const bool operand = param.kind == ParamKind::kOperand ||
                           param.kind == ParamKind::kOptOperand;
      const int64_t count = param.kind == ParamKind::kTensorList ? in_list_ : 1;
      const bool number =
          operand && param.attr_slot >= 0 && random_.Percent(25);
      if (number) {
        attrs.Set(param.attr_slot, random_.Percent(50)
                                       ? AttrValue(Number())
                                       : AttrValue(random_.Between(-2, 3)));
      }
      const bool none = number || (param.nullable && random_.Percent(30));
      for (int64_t i = 0; i < count; ++i) {
        if (none) {
          call->add_inputs(0);
          continue;
        }
        Known input = Tensor(op, param, first);
        if (first && call->inplace() && input.leaf && random_.Percent(90)) {
          // A leaf may not be written: a copy of it, or a view of the copy.
          input = Call(OpId::clone, {input.handle}, {}, true);
          if (input.handle != 0) pool_.push_back(input);
          if (random_.Percent(50)) input = ViewOf(input);
        }
        call->add_inputs(input.handle);
        first = false;
      }
    } else if (param.attr_slot >= 0 &&
               (!param.has_default || random_.Percent(35))) {
      attrs.Set(param.attr_slot, Attribute(op, param));
    }
  }
  AttrsToProto(attrs, call->mutable_attrs());
  const int promised = call->inplace() ? 0 : op.num_outputs;
  const uint64_t outputs = next_handle_;
  next_handle_ += promised;
  call->set_outputs(outputs);
  if (!Send(command)) return {};
  std::vector<Known> results;
  for (int i = 0; i < promised; ++i) {
    live_.push_back(outputs + i);
    const Known known = Look(outputs + i);
    if (known.handle == 0 || Elements(known.shape) > kMostElements) continue;
    results.push_back(known);
    pool_.push_back(known);
  }
  if (promised == 0 && call->inputs_size() > 0 && call->inputs(0) != 0) {
    const Known known = Look(call->inputs(0));
    if (known.handle != 0) results.push_back(known);
  }
  if (!results.empty()) ++accepted_;
  return results;
}

std::vector<Known> RandomProgram::Backward(const std::vector<Known>& roots,
                                           bool create) {
  v1::Command command;
  v1::Backward* backward = command.mutable_backward();
  for (const Known& root : roots) {
    if (!IsDifferentiable(root.dtype)) continue;
    uint64_t gradient = 0;
    if (Elements(root.shape) != 1 || random_.Percent(20)) {
      gradient = Call(OpId::full, {},
                      {{"size", root.shape},
                       {"fill_value", 1.0},
                       {"dtype", root.dtype}},
                      false)
                     .handle;
      if (gradient == 0) continue;
    }
    backward->add_roots(root.handle);
    backward->add_gradients(gradient);
  }
  if (backward->roots_size() == 0) return {};
  std::vector<uint64_t> promised;
  for (const Known& leaf : pool_) {
    if (!leaf.leaf) continue;
    auto* target = backward->add_targets();
    target->set_tensor(leaf.handle);
    target->set_grad(next_handle_);
    promised.push_back(next_handle_++);
  }
  if (promised.empty()) return {};
  backward->set_create_graph(create);
  backward->set_retain_graph(create || random_.Percent(50));
  backward->set_allow_unused(random_.Percent(90));
  backward->set_detect_anomaly(random_.Percent(3));
  if (!Send(command)) return {};
  std::vector<Known> gradients;
  for (const uint64_t handle : promised) {
    live_.push_back(handle);
    const Known known = Look(handle);
    if (known.handle != 0) gradients.push_back(known);
  }
  return gradients;
}

void RandomProgram::RunFor(const OpSchema& op) {
  const int trials = static_cast<int>(random_.Between(1, 8));
  for (int i = 0; i < trials && !ended_; ++i) {
    if (pool_.size() > kMostTensors) pool_.clear();
    std::vector<Known> results = CallOp(op);
    if (results.empty() || !random_.Percent(80)) continue;
    // What was written to is seen through whatever shares its memory.
    if (random_.Percent(30)) results = {random_.Pick(results)};
    const bool twice = random_.Percent(50);
    std::vector<Known> gradients = Backward(results, twice);
    if (twice && !gradients.empty()) Backward(gradients, false);
  }
}

bool RandomProgram::End() {
  v1::Command command;
  for (const uint64_t handle : live_) command.add_release(handle);
  live_.clear();
  pool_.clear();
  return Send(command);
}

}  // namespace holdfast
