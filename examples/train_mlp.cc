// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Trains a small network from C++, without Python: two interleaved spirals,
// which no straight line separates.
//
//   train_mlp [ADDRESS] [STEPS]
//
// Without an address it uses a running daemon, or starts one of its own
// (HOLDFAST_DAEMON names the binary). Prints the loss going down and the
// accuracy at the end.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "client/ops.h"
#include "client/session.h"

namespace {

using holdfast::client::ConnectOptions;
using holdfast::client::Ops;
using holdfast::client::Session;
using holdfast::client::Tensor;

constexpr int64_t kPerClass = 300;
constexpr int64_t kHidden = 64;

// Points [2N, 2] and their classes [2N].
void MakeSpirals(std::vector<float>* points, std::vector<int64_t>* classes) {
  for (int64_t label = 0; label < 2; ++label) {
    for (int64_t i = 0; i < kPerClass; ++i) {
      const double radius = 0.1 + 0.9 * i / kPerClass;
      const double angle = 2 * M_PI * radius + M_PI * label;
      points->push_back(static_cast<float>(radius * std::cos(angle)));
      points->push_back(static_cast<float>(radius * std::sin(angle)));
      classes->push_back(label);
    }
  }
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "train_mlp: %s\n", status.ToString().c_str());
  return 1;
}

int Train(Ops& ops, int steps) {
  std::vector<float> points;
  std::vector<int64_t> classes;
  MakeSpirals(&points, &classes);
  const int64_t count = 2 * kPerClass;
  const Tensor x = ops.Put(points, {count, 2});
  const Tensor y = ops.Put(classes, {count});

  // He's initialisation; values are drawn on the server.
  const auto weight = [&](int64_t out, int64_t in) {
    return ops.Parameter(ops.Mul(ops.Randn({out, in}), std::sqrt(2.0 / in)));
  };
  const auto bias = [&](int64_t out) {
    return ops.Parameter(ops.Put(std::vector<float>(out, 0.0f), {out}));
  };
  const std::vector<Tensor> parameters = {
      weight(kHidden, 2), bias(kHidden),      weight(kHidden, kHidden),
      bias(kHidden),      weight(2, kHidden), bias(2)};
  const auto logits = [&] {
    Tensor h = ops.Relu(ops.Linear(x, parameters[0], parameters[1]));
    h = ops.Relu(ops.Linear(h, parameters[2], parameters[3]));
    return ops.Linear(h, parameters[4], parameters[5]);
  };

  const auto start = std::chrono::steady_clock::now();
  double first = 0, loss = 0;
  for (int step = 0; step <= steps && ops.ok(); ++step) {
    const Tensor error = ops.CrossEntropy(logits(), y);
    if (step % std::max(1, steps / 10) == 0 || step == steps) {
      // The only wait of the loop.
      loss = ops.Item(error);
      if (step == 0) first = loss;
      std::printf("step %5d  loss %.4f\n", step, loss);
    }
    ops.Backward(error);
    ops.SgdStep(parameters, 0.3);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  ops.set_record(false);
  const std::vector<int64_t> guesses = ops.ReadInts(ops.Argmax(logits(), 1));
  if (!ops.ok()) return Fail(ops.status());
  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) right += guesses[i] == classes[i];
  std::printf("accuracy=%.3f loss=%.4f seconds=%.2f transport=%s\n",
              static_cast<double>(right) / count, loss, seconds,
              ops.session()->transport().c_str());
  if (loss < 0.5 * first) return 0;
  std::fprintf(stderr, "train_mlp: the loss must fall. Got %.4f -> %.4f\n",
               first, loss);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  ConnectOptions options;
  options.client = "train_mlp";
  if (argc > 1) options.address = argv[1];
  const int steps = argc > 2 ? std::atoi(argv[2]) : 2000;
  absl::StatusOr<std::shared_ptr<Session>> session = Session::Connect(options);
  if (!session.ok()) return Fail(session.status());
  const absl::Status seeded = (*session)->SetSeed(1);
  if (!seeded.ok()) return Fail(seeded);
  Ops ops(*session);
  const int result = Train(ops, steps);
  const absl::Status closed = (*session)->Close(/*keep=*/false);
  return closed.ok() ? result : Fail(closed);
}
