// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Device "holdfast" as PyTorch asks for it: one device, one stream (the
// session, whose order is the program's), events that are reached at once in
// that order, and a generator for the session's stream of random numbers.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "api.h"
#include "memory.h"
#include "pinned.h"

namespace holdfast_torch {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

constexpr DeviceType kType = DeviceType::PrivateUse1;

void Synchronize() {
  HfError error;
  Check(Api().synchronize(Session(), &error), error);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return kType; }
  Device exchangeDevice(Device) const override { return Device(kType, 0); }
  Device getDevice() const override { return Device(kType, 0); }
  void setDevice(Device device) const override {
    TORCH_CHECK(device.index() <= 0, "holdfast: there is one device. Got ",
                device);
  }
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const override { return Only(); }
  Stream getDefaultStream(Device) const override { return Only(); }
  Stream getStreamFromGlobalPool(Device, bool) const override { return Only(); }
  Stream getNewStream(Device, int) const override { return Only(); }
  Stream exchangeStream(Stream) const override { return Only(); }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  // One stream: whatever was submitted before an event is before what follows.
  void record(void** event, const Stream&, const DeviceIndex,
              const c10::EventFlag) const override {
    *event = const_cast<Guard*>(this);
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  void synchronizeEvent(void*) const override { Synchronize(); }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override { Synchronize(); }
  void synchronizeDevice(const DeviceIndex) const override { Synchronize(); }

 private:
  static Stream Only() { return Stream(Stream::DEFAULT, Device(kType, 0)); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// The session's stream of random numbers.
class Generator final : public c10::GeneratorImpl {
 public:
  Generator()
      : GeneratorImpl(Device(kType, 0),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    HfError error;
    Check(Api().set_seed(Session(), seed, &error), error);
  }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_offset(uint64_t) override { Refuse(); }
  uint64_t get_offset() const override { Refuse(); }
  void set_state(const c10::TensorImpl&) override { Refuse(); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { Refuse(); }
  static DeviceType device_type() { return kType; }

 private:
  [[noreturn]] static void Refuse() {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "holdfast: a generator's state cannot be read or set yet");
  }
  GeneratorImpl* clone_impl() const override { return new Generator; }

  uint64_t seed_ = c10::default_rng_seed_val;
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  const at::Generator& getDefaultGenerator(DeviceIndex) const override {
    static const auto* generator =
        new at::Generator(at::make_generator<Generator>());
    return *generator;
  }
  at::Generator getNewGenerator(DeviceIndex) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "holdfast: a generator apart from the device's own");
  }
  at::Device getDeviceFromPtr(void*) const override { return Device(kType, 0); }
  void resizePrivateUse1Bytes(const c10::Storage& storage,
                              size_t bytes) const override {
    // The elements that stay are copied by the op that grows the tensor.
    c10::DataPtr fresh = NewDeviceMemory(bytes, ShownHandle());
    storage.unsafeGetStorageImpl()->set_data_ptr(std::move(fresh));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return PinnedAllocator();
  }
  bool isPinnedPtr(const void* address) const override {
    return IsPinned(address);
  }
};

}  // namespace

void RegisterDevice() {
  static auto* hooks = new Hooks;
  at::RegisterPrivateUse1HooksInterface(hooks);
}

}  // namespace holdfast_torch
