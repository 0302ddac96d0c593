// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/fftw.h"

#include <dlfcn.h>

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace holdfast::cpu {
namespace {

// From fftw3.h, whose licence this file does not share.
constexpr unsigned kEstimate = 1u << 6;
constexpr unsigned kPreserveInput = 1u << 4;
constexpr int kForwardSign = -1, kBackwardSign = 1;

template <typename T>
struct Library {
  using Complex = T (*)[2];
  using Plan = void*;
  Plan (*plan_dft)(int, const FftwDim*, int, const FftwDim*, void*, void*, int,
                   unsigned) = nullptr;
  Plan (*plan_r2c)(int, const FftwDim*, int, const FftwDim*, void*, void*,
                   unsigned) = nullptr;
  Plan (*plan_c2r)(int, const FftwDim*, int, const FftwDim*, void*, void*,
                   unsigned) = nullptr;
  void (*execute_dft)(Plan, void*, void*) = nullptr;
  void (*execute_r2c)(Plan, void*, void*) = nullptr;
  void (*execute_c2r)(Plan, void*, void*) = nullptr;
  void (*destroy)(Plan) = nullptr;
  absl::Status status;
};

template <typename F>
bool Load(void* library, const std::string& name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name.c_str()));
  return *function != nullptr;
}

template <typename T>
Library<T> Open() {
  constexpr bool kSingle = std::is_same_v<T, float>;
  const char* file = kSingle ? "libfftw3f.so.3" : "libfftw3.so.3";
  const std::string prefix = kSingle ? "fftwf_" : "fftw_";
  Library<T> fftw;
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr ||
      !Load(library, prefix + "plan_guru64_dft", &fftw.plan_dft) ||
      !Load(library, prefix + "plan_guru64_dft_r2c", &fftw.plan_r2c) ||
      !Load(library, prefix + "plan_guru64_dft_c2r", &fftw.plan_c2r) ||
      !Load(library, prefix + "execute_dft", &fftw.execute_dft) ||
      !Load(library, prefix + "execute_dft_r2c", &fftw.execute_r2c) ||
      !Load(library, prefix + "execute_dft_c2r", &fftw.execute_c2r) ||
      !Load(library, prefix + "destroy_plan", &fftw.destroy)) {
    fftw.status = absl::UnimplementedError(
        absl::StrCat("Fourier transforms need ", file,
                     " on the daemon's machine: install Debian's package ",
                     kSingle ? "libfftw3-single3" : "libfftw3-double3"));
  }
  return fftw;
}

template <typename T>
const Library<T>& Fftw() {
  static const Library<T>& library = *new Library<T>(Open<T>());
  return library;
}

// Kind, the two dimensions, alignments of input and output, whether they are
// one.
using Key = std::array<int64_t, 10>;

// FFTW's planner is one thread's at a time; so is this table. A full table is
// emptied: calls under way keep the plans that they run.
constexpr size_t kMaxPlans = 512;

template <typename T>
struct Plans {
  std::recursive_mutex mutex;  // a plan's end comes back to it
  std::map<Key, std::shared_ptr<void>> made;
};

template <typename T>
Plans<T>& AllPlans() {
  static Plans<T>& plans = *new Plans<T>;
  return plans;
}

}  // namespace

void OpenFftw() {
  Fftw<float>();
  Fftw<double>();
}

template <typename T>
absl::StatusOr<FftwPlan<T>> FftwPlan<T>::Make(FftKind kind, FftwDim transform,
                                              FftwDim loop, const void* in,
                                              const void* out) {
  const Library<T>& fftw = Fftw<T>();
  if (!fftw.status.ok()) return fftw.status;
  const Key key = {static_cast<int64_t>(kind),
                   transform.n,
                   transform.in_stride,
                   transform.out_stride,
                   loop.n,
                   loop.in_stride,
                   loop.out_stride,
                   Alignment(in),
                   Alignment(out),
                   in == out};
  Plans<T>& plans = AllPlans<T>();
  const std::lock_guard<std::recursive_mutex> lock(plans.mutex);
  auto found = plans.made.find(key);
  if (found != plans.made.end()) return FftwPlan(kind, found->second);
  if (plans.made.size() >= kMaxPlans) plans.made.clear();
  // Planning with kEstimate does not touch the data.
  void* from = const_cast<void*>(in);
  void* to = const_cast<void*>(out);
  const int loops = loop.n == 1 ? 0 : 1;
  void* plan = nullptr;
  switch (kind) {
    case FftKind::kForward:
    case FftKind::kBackward:
      plan = fftw.plan_dft(
          1, &transform, loops, &loop, from, to,
          kind == FftKind::kForward ? kForwardSign : kBackwardSign, kEstimate);
      break;
    case FftKind::kRealToComplex:
      plan = fftw.plan_r2c(1, &transform, loops, &loop, from, to,
                           kEstimate | kPreserveInput);
      break;
    case FftKind::kComplexToReal:
      plan = fftw.plan_c2r(1, &transform, loops, &loop, from, to,
                           kEstimate | kPreserveInput);
      break;
  }
  if (plan == nullptr) {
    return absl::InternalError(
        absl::StrCat("FFTW has no plan for ", transform.n, " points"));
  }
  std::shared_ptr<void> owned(plan, [&fftw, &plans](void* p) {
    const std::lock_guard<std::recursive_mutex> lock(plans.mutex);
    fftw.destroy(p);
  });
  plans.made.emplace(key, owned);
  return FftwPlan(kind, std::move(owned));
}

template <typename T>
void FftwPlan<T>::Run(void* in, void* out) const {
  const Library<T>& fftw = Fftw<T>();
  switch (kind_) {
    case FftKind::kForward:
    case FftKind::kBackward:
      return fftw.execute_dft(plan_.get(), in, out);
    case FftKind::kRealToComplex:
      return fftw.execute_r2c(plan_.get(), in, out);
    case FftKind::kComplexToReal:
      return fftw.execute_c2r(plan_.get(), in, out);
  }
}

template class FftwPlan<float>;
template class FftwPlan<double>;

}  // namespace holdfast::cpu
