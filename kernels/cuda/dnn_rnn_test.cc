// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers by cuDNN without a GPU: its functions are there, it takes
// the descriptions of layers, and everything around its calls (the order of
// weights, packed rows, turned rows, who computes what) is right against a
// stand-in for them.
#include "kernels/cuda/dnn_rnn.h"

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/fake_dnn_rnn.h"
#include "kernels/cuda/host_context.h"
#include "kernels/cuda/recurrent_by_dnn.h"
#include "kernels/cuda/recurrent_layer.h"
#include "kernels/cuda/turned_rows.h"
#include "ops/infer.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {
namespace {

class CountingContext final : public HostContext {
 public:
  absl::Status CopyOnDevice(void* to, const void* from, size_t n) override {
    ++copies;
    return HostContext::CopyOnDevice(to, from, n);
  }

  int copies = 0;
};

struct Floats {
  TensorSpec spec;
  std::vector<float> values;
  Floats() = default;
  explicit Floats(const Dims& shape)
      : spec(ContiguousSpec(DType::kFloat32, shape)), values(spec.numel()) {}
  TensorView view() { return {values.data(), &spec}; }
};

struct Case {
  std::string mode = "lstm";
  bool reverse = false, packed = false, bias = true;
  int64_t hidden = 5, inputs = 3;
};

// A layer's inputs, and both ops on them.
class Layer {
 public:
  explicit Layer(const Case& c) : case_(c) {
    const int64_t gates = c.mode == "lstm" ? 4 : c.mode == "gru" ? 3 : 1;
    const int64_t width = gates * c.hidden, h = c.hidden;
    in_[kRnnInput] = Random(Rows(c.inputs));
    in_[kRnnH0] = Random({3, h});
    if (c.mode == "lstm") in_[kRnnC0] = Random({3, h});
    in_[kRnnWeightIh] = Random({width, c.inputs});
    in_[kRnnWeightHh] = Random({width, h});
    if (c.bias) in_[kRnnBiasIh] = Random({width});
    if (c.bias) in_[kRnnBiasHh] = Random({width});
    for (Floats& tensor : in_) {
      inputs_.push_back(tensor.values.empty() ? TensorView() : tensor.view());
    }
    if (c.packed) inputs_[kRnnBatchSizes] = {sizes_.data(), &sizes_spec_};
    grads_ = {Random(Rows(h)), Random({3, h}), Random({3, h})};
  }

  Attrs attrs(bool save) const {
    Attrs attrs(&GetOp(OpId::rnn_layer));
    attrs.Set("mode", case_.mode);
    attrs.Set("reverse", case_.reverse);
    attrs.Set("save", save);
    return attrs;
  }
  Attrs backward_attrs(int64_t wanted) const {
    Attrs attrs(&GetOp(OpId::rnn_layer_backward));
    attrs.Set("mode", case_.mode);
    attrs.Set("reverse", case_.reverse);
    attrs.Set("wanted", wanted);
    return attrs;
  }
  absl::Span<const TensorView> inputs() const { return inputs_; }

  // The four outputs, with a reserve of that many elements.
  std::vector<Floats> Outputs(int64_t reserve) const {
    const Dims state = {3, case_.hidden}, none = {0};
    return Make({Rows(case_.hidden),
                 state,
                 case_.mode == "lstm" ? state : none,
                 {reserve}});
  }
  std::vector<Floats> Gradients(int64_t wanted) const {
    const bool weights = (wanted & kRnnWeightGrads) != 0;
    const Dims none = {0}, state = {3, case_.hidden};
    const auto shape_of = [&](int i) { return in_[i].spec.shape; };
    return Make({(wanted & kRnnInputGrad) != 0 ? Rows(case_.inputs) : none,
                 state, case_.mode == "lstm" ? state : none,
                 weights ? shape_of(kRnnWeightIh) : none,
                 weights ? shape_of(kRnnWeightHh) : none,
                 weights && case_.bias ? shape_of(kRnnBiasIh) : none,
                 weights && case_.bias ? shape_of(kRnnBiasHh) : none});
  }
  // `arrive`: bits of the gradients that do.
  std::vector<TensorView> BackwardInputs(std::vector<Floats>* outputs,
                                         int arrive) {
    std::vector<TensorView> all;
    for (int i = 0; i < 3; ++i) {
      const bool there =
          (arrive >> i & 1) != 0 && (i < 2 || case_.mode == "lstm");
      all.push_back(there ? grads_[i].view() : TensorView());
    }
    all.insert(all.end(), inputs_.begin(), inputs_.end());
    all.push_back((*outputs)[0].view());
    all.push_back((*outputs)[3].view());
    return all;
  }

 private:
  Dims Rows(int64_t width) const {
    return case_.packed ? Dims{8, width} : Dims{4, 3, width};
  }
  static std::vector<Floats> Make(const std::vector<Dims>& shapes) {
    std::vector<Floats> all;
    for (const Dims& shape : shapes) {
      all.emplace_back(shape);
      for (float& value : all.back().values) value = std::nanf("");
    }
    return all;
  }
  Floats Random(const Dims& shape) {
    Floats tensor(shape);
    std::uniform_real_distribution<float> any(-1, 1);
    for (float& value : tensor.values) value = any(engine_);
    return tensor;
  }

  const Case case_;
  std::mt19937 engine_{7};
  Floats in_[kRnnLayerInputs];
  std::vector<Floats> grads_;
  std::vector<int64_t> sizes_ = {3, 2, 2, 1};
  TensorSpec sizes_spec_ = ContiguousSpec(DType::kInt64, {4});
  std::vector<TensorView> inputs_;
};

std::vector<TensorView> ViewsOf(std::vector<Floats>* tensors) {
  std::vector<TensorView> views;
  for (Floats& tensor : *tensors) views.push_back(tensor.view());
  return views;
}

void ExpectNear(const std::vector<Floats>& ours,
                const std::vector<Floats>& wanted, size_t count,
                const std::string& what) {
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(ours[i].values.size(), wanted[i].values.size());
    for (size_t j = 0; j < ours[i].values.size(); ++j) {
      ASSERT_NEAR(ours[i].values[j], wanted[i].values[j], 2e-5)
          << what << ": tensor " << i << ", element " << j;
    }
  }
}

class DnnRnnTest : public testing::Test {
 protected:
  void SetUp() override { FakeDnnRnn::Get() = FakeDnnRnn(); }
  // A device's library, and its whole memory of problems.
  DnnRecurrent Library() { return DnnRecurrent(dnn_, rnn_, {9, 132}); }

  const DnnLibrary dnn_ = FakeDnnLibrary();
  const DnnRnnLibrary rnn_ = FakeDnnRnnLibrary();
};

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const char* mode : {"tanh", "relu", "lstm", "gru"}) {
    for (int bits = 0; bits < 8; ++bits) {
      all.push_back({mode, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
    }
  }
  return all;
}

std::string NameOf(const Case& c) {
  return absl::StrCat(c.mode, c.reverse ? " reverse" : "",
                      c.packed ? " packed" : "", c.bias ? " bias" : "");
}

TEST_F(DnnRnnTest, LayersAndGradientsAreThoseOfOwnKernels) {
  for (bool scattered : {false, true}) {
    FakeDnnRnn::Get().scattered = scattered;
    for (const Case& c : AllCases()) {
      const std::string name = NameOf(c);
      CountingContext context;
      DnnRecurrent library = Library();
      Layer layer(c);
      const Attrs attrs = layer.attrs(true);
      const int64_t own = RecurrentReserve(attrs, *layer.inputs()[0].spec,
                                           *layer.inputs()[kRnnH0].spec);
      std::vector<Floats> wanted = layer.Outputs(own);
      ASSERT_TRUE(
          OwnRecurrentLayer(context, attrs, layer.inputs(), ViewsOf(&wanted))
              .ok());
      const int64_t reserve =
          DnnReserve(library, context, attrs, layer.inputs(), own);
      ASSERT_EQ(reserve % 2, 1);
      ASSERT_GT(reserve, own);
      std::vector<Floats> ours = layer.Outputs(reserve);
      ASSERT_TRUE(IsDnnReserve(ours[3].spec));
      absl::StatusOr<bool> done =
          LayerByDnn(library, context, attrs, layer.inputs(), ViewsOf(&ours));
      ASSERT_TRUE(done.ok() && *done) << name << done.status();
      ExpectNear(ours, wanted, 3, name);
      // Twice from one reserve, as after retain_graph.
      for (int64_t bits : {3, 3, 1, 2, 0}) {
        for (int arrive : {7, 1, 6}) {
          std::vector<Floats> right = layer.Gradients(bits);
          const Attrs backward = layer.backward_attrs(bits);
          ASSERT_TRUE(
              OwnRecurrentLayerBackward(context, backward,
                                        layer.BackwardInputs(&wanted, arrive),
                                        ViewsOf(&right))
                  .ok());
          std::vector<Floats> grads = layer.Gradients(bits);
          done = LayerBackwardByDnn(library, context, backward,
                                    layer.BackwardInputs(&ours, arrive),
                                    ViewsOf(&grads));
          ASSERT_TRUE(done.ok() && *done) << name << done.status();
          ExpectNear(grads, right, 7, name + " gradient");
        }
      }
    }
  }
  EXPECT_EQ(FakeDnnRnn::Get().alive, 0);
}

TEST_F(DnnRnnTest, NothingIsSavedWithoutAGradientToCome) {
  for (const Case& c : AllCases()) {
    CountingContext context;
    DnnRecurrent library = Library();
    Layer layer(c);
    const Attrs attrs = layer.attrs(false);
    std::vector<Floats> wanted = layer.Outputs(0), ours = layer.Outputs(0);
    ASSERT_TRUE(
        OwnRecurrentLayer(context, attrs, layer.inputs(), ViewsOf(&wanted))
            .ok());
    absl::StatusOr<bool> done =
        LayerByDnn(library, context, attrs, layer.inputs(), ViewsOf(&ours));
    ASSERT_TRUE(done.ok() && *done) << NameOf(c) << done.status();
    ExpectNear(ours, wanted, 3, NameOf(c));
  }
}

TEST_F(DnnRnnTest, NeighbouringWeightsAreOneCopy) {
  CountingContext context;
  DnnRecurrent library = Library();
  Layer layer(Case{});
  std::vector<Floats> out = layer.Outputs(0);
  ASSERT_TRUE(*LayerByDnn(library, context, layer.attrs(false), layer.inputs(),
                          ViewsOf(&out)));
  EXPECT_EQ(context.copies, 4);
  FakeDnnRnn::Get().scattered = true;
  CountingContext other;
  DnnRecurrent scattered = Library();
  ASSERT_TRUE(*LayerByDnn(scattered, other, layer.attrs(false), layer.inputs(),
                          ViewsOf(&out)));
  EXPECT_EQ(other.copies, 16);
}

TEST(MergePartsTest, TakesTogetherWhatFollowsOnBothSides) {
  using Parts = std::vector<WeightPart>;
  EXPECT_EQ(MergeParts({}), Parts());
  EXPECT_EQ(MergeParts({{0, 8, 108, 8}, {0, 0, 100, 8}, {1, 0, 116, 4}}),
            (Parts{{0, 0, 100, 16}, {1, 0, 116, 4}}));
  // Not in one order, not next to each other.
  const Parts apart = {{0, 0, 8, 8}, {0, 8, 0, 8}, {0, 16, 20, 8}};
  EXPECT_EQ(MergeParts(apart), apart);
}

// ---- who computes

TEST_F(DnnRnnTest, TheNextWayIsTakenWhereOneIsRefused) {
  FakeDnnRnn& fake = FakeDnnRnn::Get();
  const auto small = CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H;
  const auto standard = CUDNN_RNN_ALGO_STANDARD;
  CountingContext context;
  Layer layer(Case{});
  std::vector<Floats> out = layer.Outputs(0);
  const auto run = [&](DnnRecurrent& library) {
    return LayerByDnn(library, context, layer.attrs(false), layer.inputs(),
                      ViewsOf(&out));
  };
  {
    DnnRecurrent library = Library();
    ASSERT_TRUE(*run(library));
    ASSERT_TRUE(*run(library));
    EXPECT_EQ(fake.described, (std::vector{small, standard}));  // once
    EXPECT_EQ(fake.run, (std::vector{small, small}));
  }
  {
    fake = FakeDnnRnn();
    fake.refused_when_run = {small};
    DnnRecurrent library = Library();
    ASSERT_TRUE(*run(library));
    ASSERT_TRUE(*run(library));
    EXPECT_EQ(fake.run, (std::vector{small, standard, standard}));
    // What has worked and fails then is an error: its reserves are cuDNN's.
    fake.refused_when_run = {standard};
    const absl::StatusOr<bool> failed = run(library);
    EXPECT_EQ(failed.status().message(),
              "[cuda] cudnnRNNForward: NOT_SUPPORTED");
  }
  fake = FakeDnnRnn();
  fake.refused_when_described = {small};
  DnnRecurrent library = Library();
  ASSERT_TRUE(*run(library));
  EXPECT_EQ(fake.run, (std::vector{standard}));
}

TEST_F(DnnRnnTest, ARefusedProblemIsTheOwnKernelsForward_AndBackward) {
  FakeDnnRnn& fake = FakeDnnRnn::Get();
  fake.refused_when_run = {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H,
                           CUDNN_RNN_ALGO_STANDARD};
  CountingContext context;
  DnnRecurrent library = Library();
  Layer layer(Case{});
  const Attrs attrs = layer.attrs(true);
  const int64_t own = RecurrentReserve(attrs, *layer.inputs()[0].spec,
                                       *layer.inputs()[kRnnH0].spec);
  const int64_t reserve =
      DnnReserve(library, context, attrs, layer.inputs(), own);
  std::vector<Floats> out = layer.Outputs(reserve);
  EXPECT_FALSE(
      *LayerByDnn(library, context, attrs, layer.inputs(), ViewsOf(&out)));
  // Own kernels take the reserve that was meant for cuDNN, and their gradient
  // finds what they left, also with other switches.
  std::vector<Floats> wanted = layer.Outputs(own);
  for (std::vector<Floats>* to : {&out, &wanted}) {
    ASSERT_TRUE(
        OwnRecurrentLayer(context, attrs, layer.inputs(), ViewsOf(to)).ok());
  }
  fake.refused_when_run.clear();
  context.numerics.conv_tf32 = !context.numerics.conv_tf32;
  std::vector<Floats> grads = layer.Gradients(3), right = layer.Gradients(3);
  EXPECT_FALSE(*LayerBackwardByDnn(library, context, layer.backward_attrs(3),
                                   layer.BackwardInputs(&out, 7),
                                   ViewsOf(&grads)));
  for (auto [from, to] : {std::pair(&out, &grads), {&wanted, &right}}) {
    ASSERT_TRUE(OwnRecurrentLayerBackward(context, layer.backward_attrs(3),
                                          layer.BackwardInputs(from, 7),
                                          ViewsOf(to))
                    .ok());
  }
  ExpectNear(grads, right, 7, "gradient");
  // Nobody plans with cuDNN any more.
  EXPECT_EQ(DnnReserve(library, context, attrs, layer.inputs(), own), own);
}

TEST_F(DnnRnnTest, AReserveThatIsTooSmallIsAnError) {
  CountingContext context;
  DnnRecurrent library = Library();
  Layer layer(Case{});
  std::vector<Floats> out = layer.Outputs(7), grads = layer.Gradients(3);
  const absl::StatusOr<bool> done =
      LayerBackwardByDnn(library, context, layer.backward_attrs(3),
                         layer.BackwardInputs(&out, 7), ViewsOf(&grads));
  EXPECT_TRUE(absl::IsInvalidArgument(done.status())) << done.status();
  EXPECT_NE(done.status().message().find("Got 28."), std::string::npos)
      << done.status();
}

TEST_F(DnnRnnTest, Tf32IsTheSessionsChoice) {
  for (bool tf32 : {false, true}) {
    CountingContext context;
    context.numerics.conv_tf32 = tf32;
    DnnRecurrent library = Library();
    Layer layer(Case{});
    std::vector<Floats> out = layer.Outputs(0);
    ASSERT_TRUE(*LayerByDnn(library, context, layer.attrs(false),
                            layer.inputs(), ViewsOf(&out)));
    EXPECT_EQ(FakeDnnRnn::Get().math,
              tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH);
  }
}

TEST_F(DnnRnnTest, EmptyLayersAreNotCudnns) {
  DnnRecurrent library = Library();
  for (int64_t RnnProblem::*size : {&RnnProblem::steps, &RnnProblem::batch,
                                    &RnnProblem::inputs, &RnnProblem::hidden}) {
    RnnProblem problem;
    EXPECT_TRUE(library.ReserveBytes(problem).has_value());
    problem.*size = 0;
    EXPECT_FALSE(library.ReserveBytes(problem).has_value());
    problem.*size = int64_t{1} << 31;
    EXPECT_FALSE(library.ReserveBytes(problem).has_value());
  }
}

// However many there are, what cuDNN needs for each is made again at most.
TEST_F(DnnRnnTest, ManySizesDoNotAddUp) {
  DnnRecurrent library = Library();
  RnnProblem problem;
  for (problem.steps = 1; problem.steps <= 5000; ++problem.steps) {
    ASSERT_TRUE(library.ReserveBytes(problem).has_value());
  }
  constexpr int kEach = 2 * (3 + 4);  // of two ways
  EXPECT_LE(FakeDnnRnn::Get().alive, 4096 * kEach);
  // The last ones are known still.
  FakeDnnRnn::Get().described.clear();
  problem.steps = 5000;
  ASSERT_TRUE(library.ReserveBytes(problem).has_value());
  EXPECT_TRUE(FakeDnnRnn::Get().described.empty());
}

// ---- rows

TEST(RecurrentStepsTest, LengthsAndTurnedRowsOfPackedSequences) {
  RecurrentSteps s;
  s.batch = 3;
  s.sizes = {3, 2, 2, 1};
  s.starts = {0, 3, 5, 7};
  EXPECT_EQ(s.Lengths(), (std::vector<int32_t>{4, 3, 1}));
  const std::vector<int64_t> turned = s.TurnedRows();
  EXPECT_EQ(turned, (std::vector<int64_t>{7, 6, 2, 5, 4, 3, 1, 0}));
  for (size_t i = 0; i < turned.size(); ++i) EXPECT_EQ(turned[turned[i]], i);
}

TEST(RecurrentStepsTest, RowsOfOneLengthNeedNoList) {
  RecurrentSteps s;
  s.batch = 2;
  s.sizes = {2, 2, 2};
  s.starts = {0, 2, 4};
  CountingContext context;
  Floats rows({3, 2, 2}), by_list({3, 2, 2}), by_place({3, 2, 2});
  for (size_t i = 0; i < 12; ++i) rows.values[i] = static_cast<float>(i);
  for (bool packed : {false, true}) {
    TurnedRows turned;
    ASSERT_TRUE(turned.Make(context, s, packed).ok());
    Floats& to = packed ? by_list : by_place;
    ASSERT_TRUE(turned.Copy(context, rows.view(), to.values.data()).ok());
  }
  EXPECT_EQ(by_place.values,
            (std::vector<float>{8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}));
  EXPECT_EQ(by_list.values, by_place.values);
}

// ---- the library itself

class CudnnTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status opened = OpenDnnRnn(&rnn_);
    // A function that is missing is a fault of ours.
    if (!opened.ok() &&
        std::string(opened.message()).find("cannot be loaded") !=
            std::string::npos) {
      GTEST_SKIP() << opened.message();
    }
    ASSERT_TRUE(opened.ok()) << opened.message();
  }

  DnnRnnLibrary rnn_;
};

TEST_F(CudnnTest, HasEveryFunction) {
#define X(function) EXPECT_NE(rnn_.function, nullptr) << #function;
  HOLDFAST_DNN_RNN_FUNCTIONS(X)
#undef X
}

// As far as it describes layers without a GPU.
TEST_F(CudnnTest, TakesLayersOfEveryTypeAndMode) {
  cudnnRNNDescriptor_t layer = nullptr;
  ASSERT_EQ(rnn_.cudnnCreateRNNDescriptor(&layer), CUDNN_STATUS_SUCCESS);
  cudnnRNNDataDescriptor_t rows = nullptr;
  ASSERT_EQ(rnn_.cudnnCreateRNNDataDescriptor(&rows), CUDNN_STATUS_SUCCESS);
  const int lengths[] = {4, 3, 1};
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                               CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    const bool wide = type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE;
    for (cudnnRNNMode_t mode :
         {CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU}) {
      EXPECT_EQ(rnn_.cudnnSetRNNDescriptor_v8(
                    layer, CUDNN_RNN_ALGO_STANDARD, mode, CUDNN_RNN_DOUBLE_BIAS,
                    CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type,
                    type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT,
                    wide ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH, 3, 5, 5, 1,
                    nullptr, CUDNN_RNN_PADDED_IO_ENABLED),
                CUDNN_STATUS_SUCCESS)
          << type << " " << mode;
    }
    for (auto layout : {CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                        CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED}) {
      EXPECT_EQ(rnn_.cudnnSetRNNDataDescriptor(rows, type, layout, 4, 3, 5,
                                               lengths, nullptr),
                CUDNN_STATUS_SUCCESS);
    }
  }
  rnn_.cudnnDestroyRNNDataDescriptor(rows);
  rnn_.cudnnDestroyRNNDescriptor(layer);
}

// Sizes of a tensor are asked for with room for more.
TEST_F(CudnnTest, TellsSizesOfTensors) {
  cudnnTensorDescriptor_t tensor = nullptr;
  ASSERT_EQ(rnn_.cudnnCreateTensorDescriptor(&tensor), CUDNN_STATUS_SUCCESS);
  const int sizes[] = {1, 3, 5}, strides[] = {15, 5, 1};
  ASSERT_EQ(rnn_.cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_HALF, 3, sizes,
                                            strides),
            CUDNN_STATUS_SUCCESS);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int rank = 0, told[8] = {}, steps[8] = {};
  EXPECT_EQ(
      rnn_.cudnnGetTensorNdDescriptor(tensor, 8, &type, &rank, told, steps),
      CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(type, CUDNN_DATA_HALF);
  EXPECT_EQ(rank, 3);
  EXPECT_EQ((std::vector<int>(told, told + 3)), (std::vector<int>{1, 3, 5}));
  rnn_.cudnnDestroyTensorDescriptor(tensor);
}

}  // namespace
}  // namespace holdfast::cuda
