// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DurableState: loading what a start found, in the background.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/profile_clock.h"
#include "server/exec/host_staging.h"
#include "server/exec/worker.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"
#include "server/state/durable_state.h"
#include "server/state/saved_tensor.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr int64_t kShowEvery = 1'000'000'000;  // ns
constexpr double kGiB = 1 << 30;

PublishedPtr VersionOf(const state::SavedName& name) {
  const v1::Published& saved = name.published();
  auto version = std::make_shared<PublishedVersion>();
  version->owner = saved.owner();
  version->name = saved.name();
  version->number = saved.version();
  version->durable = true;
  version->saved = true;
  version->structure = saved.structure();
  version->time = saved.time();
  version->readable_by_all = saved.readers().all();
  version->readers.assign(saved.readers().users().begin(),
                          saved.readers().users().end());
  version->items.resize(name.tensors_size());
  return version;
}

}  // namespace

void DurableState::Start(Device* device, Worker* worker,
                         SessionRegistry* registry) {
  device_ = device;
  worker_ = worker;
  registry_ = registry;
  registry->set_archive(this);
  worker_->Run([&] {
    registry_->names()->set_durable(this);
    for (Load& load : to_load_) {
      const state::Header& header = load.files[0].header;
      if (std::get<0>(load.key) == kSession) {
        registry_->AddLoading(header.session().user(), header.session().name());
      } else {
        load.version = VersionOf(header.name());
        load.version->bytes = load.files[0].bytes();
        registry_->names()->AddLoading(load.version);
      }
    }
  });
  if (loads_ > 0) {
    spdlog::info("state: {} has {} names and sessions, {:.3f} GiB; loading",
                 folder_->path(), loads_, bytes_found_ / kGiB);
  }
  writer_ = std::thread([this] { WriteLoop(); });
  loader_ = std::thread([this] { LoadLoop(); });
}

void DurableState::Hurry(const std::string& owner, const std::string& name) {
  LoadNext({kName, owner, name});
}

void DurableState::HurrySession(const std::string& user,
                                const std::string& name) {
  LoadNext({kSession, user, name});
}

void DurableState::LoadNext(const Key& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it =
      std::find_if(to_load_.begin(), to_load_.end(),
                   [&](const Load& load) { return load.key == key; });
  if (it == to_load_.end()) return;
  Load load = std::move(*it);
  to_load_.erase(it);
  to_load_.push_front(std::move(load));
}

void DurableState::LoadLoop() {
  while (!stop_loading_.load()) {
    Load load;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (to_load_.empty()) break;
      load = std::move(to_load_.front());
      to_load_.pop_front();
    }
    LoadOne(std::move(load));
    ++loads_done_;
    ShowProgress(/*last=*/false);
  }
  if (loads_ > 0) ShowProgress(/*last=*/true);
}

void DurableState::ShowProgress(bool last) {
  const int64_t now = ProfileNow();
  if (!last && now - shown_ns_ < kShowEvery) return;
  shown_ns_ = now;
  spdlog::info(
      "state: {} of {} names and sessions, {:.3f} of {:.3f} GiB loaded",
      loads_done_, loads_, bytes_loaded_ / kGiB, bytes_found_ / kGiB);
}

void DurableState::LoadOne(Load load) {
  // Replaced or removed since?
  const auto is_current = [&] {
    std::lock_guard<std::mutex> lock(files_mutex_);
    const auto it = files_.find(load.key);
    return it != files_.end() &&
           std::find(it->second.begin(), it->second.end(),
                     load.files[0].path) != it->second.end();
  };
  if (!is_current()) return;
  if (std::get<0>(load.key) == kSession) {
    LoadSession(load);
  } else {
    LoadName(load);
    // Its storages are the worker's to free.
    worker_->Run([&] { load.version.reset(); });
  }
}

absl::StatusOr<std::vector<RefPtr<Storage>>> DurableState::LoadBlobs(
    const StateFileReader& file, CachingAllocator* allocator, StreamId stream) {
  std::vector<RefPtr<Storage>> storages;
  for (int i = 0; i < file.header().blobs_size(); ++i) {
    const uint64_t bytes = file.header().blobs(i).bytes();
    absl::StatusOr<MemoryBlock*> block = allocator->Allocate(bytes, stream);
    if (!block.ok()) return block.status();
    storages.push_back(MakeRef<Storage>(allocator, *block));
    char* const to = storages.back()->data();
    const bool direct = device_->host_memory();
    std::unique_ptr<HostStaging> staging;
    CopyStreams copies(device_, stream, /*priority=*/0);
    const SessionDevice at = {device_,
                              stream,
                              allocator,
                              nullptr,
                              /*asynchronous=*/true,
                              &copies};
    absl::Status status = file.ReadBlob(
        i, direct ? to : nullptr,
        [&](uint64_t offset, absl::string_view piece) {
          bytes_loaded_ += piece.size();
          if (stop_loading_.load()) {
            return absl::CancelledError("[state] the daemon is ending");
          }
          ShowProgress(/*last=*/false);
          if (direct) return absl::OkStatus();
          absl::Status copied;
          worker_->Run([&] {
            if (staging == nullptr) {
              staging = std::make_unique<HostStaging>(
                  std::vector<Device*>{device_}, /*shared=*/false, 0,
                  /*account=*/nullptr);
            }
            copied = staging->Upload(at, **block, piece, offset);
            if (copied.ok()) copied = device_->Synchronize(stream);
          });
          return copied;
        });
    if (staging != nullptr) worker_->Run([&] { staging.reset(); });
    if (!status.ok()) return status;
  }
  return storages;
}

void DurableState::LoadName(const Load& load) {
  const std::string& owner = std::get<1>(load.key);
  const std::shared_ptr<CachingAllocator> memory =
      registry_->names()->Memory(owner);
  absl::Status status;
  for (const StateFolder::File& candidate : load.files) {
    const state::SavedName& name = candidate.header.name();
    PublishedPtr version = load.version;
    absl::StatusOr<std::vector<RefPtr<Storage>>> storages =
        std::vector<RefPtr<Storage>>();
    absl::StatusOr<StateFileReader> file =
        StateFileReader::Open(candidate.path);
    status = file.status();
    if (status.ok()) {
      storages = LoadBlobs(*file, memory.get(), registry_->names()->stream());
      status = storages.status();
    }
    std::vector<PublishedVersion::Item> items;
    uint64_t bytes = 0;
    for (int i = 0; status.ok() && i < name.tensors_size(); ++i) {
      PublishedVersion::Item item;
      item.key = name.tensors(i).key();
      item.requires_grad = name.tensors(i).requires_grad();
      status = CheckSavedTensor(name.tensors(i), candidate.header, &item.spec);
      if (status.ok()) item.storage = (*storages)[name.tensors(i).blob()];
      items.push_back(std::move(item));
    }
    if (status.ok()) {
      for (const auto& storage : *storages) bytes += storage->block().bytes;
    }
    // What the worker frees goes with it.
    worker_->Run([&] {
      if (!status.ok()) {
        items.clear();
        if (storages.ok()) storages->clear();
        return;
      }
      version->number = name.published().version();
      version->structure = name.published().structure();
      version->time = name.published().time();
      version->bytes = bytes;
      version->items = std::move(items);
      storages->clear();
      registry_->names()->FinishLoading(version, absl::OkStatus(), memory);
      version.reset();
    });
    if (status.ok() || absl::IsCancelled(status)) return;
    if (!absl::IsDataLoss(status)) break;
    folder_->SetAside(candidate.path, status);
  }
  spdlog::error("state: '{}' cannot be loaded: {}", std::get<2>(load.key),
                std::string(status.message()));
  worker_->Run(
      [&] { registry_->names()->FinishLoading(load.version, status, memory); });
}

void DurableState::LoadSession(const Load& load) {
  absl::Status status;
  for (const StateFolder::File& candidate : load.files) {
    const state::SavedSession& saved = candidate.header.session();
    absl::StatusOr<StateFileReader> file =
        StateFileReader::Open(candidate.path);
    status = file.status();
    std::shared_ptr<Session> session;
    if (status.ok()) {
      absl::StatusOr<std::shared_ptr<Session>> made =
          registry_->NewDetached(saved.user(), saved.name(), saved.client());
      status = made.status();
      if (made.ok()) session = *std::move(made);
    }
    absl::StatusOr<std::vector<RefPtr<Storage>>> storages =
        std::vector<RefPtr<Storage>>();
    if (status.ok()) {
      storages = LoadBlobs(*file, session->memory(), session->options().stream);
      status = storages.status();
    }
    KeptTensors kept;
    kept.random = {saved.random().seed(), saved.random().offset()};
    kept.next_handle = saved.next_handle();
    for (int i = 0; status.ok() && i < saved.kept_size(); ++i) {
      KeptTensors::Item item;
      item.name = saved.kept(i).key();
      item.requires_grad = saved.kept(i).requires_grad();
      status = CheckSavedTensor(saved.kept(i), candidate.header, &item.spec);
      if (status.ok()) item.storage = (*storages)[saved.kept(i).blob()];
      kept.items.push_back(std::move(item));
    }
    worker_->Run([&] {
      if (storages.ok()) storages->clear();
      if (status.ok()) session->RestoreKept(std::move(kept));
      kept.items.clear();
      if (status.ok()) registry_->FinishLoading(session);
      session.reset();
    });
    if (status.ok() || absl::IsCancelled(status)) return;
    if (!absl::IsDataLoss(status)) break;
    folder_->SetAside(candidate.path, status);
  }
  spdlog::error("state: session '{}' cannot be loaded: {}",
                std::get<2>(load.key), std::string(status.message()));
  registry_->DropLoading(std::get<1>(load.key), std::get<2>(load.key));
}

}  // namespace holdfast
