// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: named tensors (published_tensors.h). A version is made of copies
// in the memory of the user's names, which no client maps: no one can write
// them, and they need neither the session nor its memory. Where the publisher
// wants it writable, it is the tensors' own storages.
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ops/place_op.h"
#include "proto/convert.h"
#include "server/exec/executor.h"
#include "server/exec/published_tensors.h"

namespace holdfast {
namespace {

constexpr uint64_t kServerHandles = uint64_t{1} << 63;
constexpr size_t kMaxListed = 256;     // names in one reply
constexpr int kMaxReaders = 1024;      // users named with a publication
constexpr size_t kReplyMargin = 4096;  // what an event has around its data

absl::Status CheckName(const v1::Publish& publish) {
  const std::string& name = publish.name();
  if (name.empty() || name.size() > PublishedTensors::kMaxNameBytes ||
      name.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[publish] a name has 1 to ", PublishedTensors::kMaxNameBytes,
        " bytes, none of them 0. Got ", name.size(), " bytes"));
  }
  if (publish.durable() && publish.writable()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[publish] '", name,
        "' can be durable or writable, not both: what others write would not "
        "be on disk"));
  }
  if (publish.readers().users_size() > kMaxReaders) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[publish] at most ", kMaxReaders, " readers can be named. Got ",
        publish.readers().users_size(), " for '", name, "'"));
  }
  return absl::OkStatus();
}

void Describe(const PublishedVersion& version, const std::string& user,
              v1::Published* message) {
  message->set_name(version.name);
  message->set_owner(version.owner);
  message->set_version(version.number);
  message->set_durable(version.durable);
  message->set_writable(version.writable);
  message->set_tensor_count(version.items.size());
  message->set_bytes(version.bytes);
  message->set_time(version.time);
  message->set_saved(version.saved);
  if (user != version.owner) return;
  message->mutable_readers()->set_all(version.readable_by_all);
  for (const std::string& reader : version.readers) {
    message->mutable_readers()->add_users(reader);
  }
}

}  // namespace

absl::Status Executor::ApplyNames(const v1::NameRequest& request) {
  const uint64_t id = request.id();
  // The answer may come later, when this session has ended or has a new client.
  const std::weak_ptr<int> waiting = client_life_;
  const auto answer = [this, waiting,
                       id](absl::StatusOr<PublishedPtr> version) {
    if (waiting.expired()) return;
    if (!version.ok()) return AnswerNames(id, version.status());
    v1::NameReply reply;
    if (*version != nullptr) {
      Describe(**version, options_.user, reply.add_published());
    }
    AnswerNames(id, reply);
  };
  switch (request.kind_case()) {
    case v1::NameRequest::kPublish: {
      FailurePtr failure;
      absl::Status status = Publish(request.publish(), answer, &failure);
      if (status.ok()) break;
      if (failure == nullptr) {
        AnswerNames(id, status);
        break;
      }
      v1::ReadResult result;
      result.set_id(id);
      ReportFailure(*failure, result.mutable_status());
      sink_->Reply(std::move(result));
      break;
    }
    case v1::NameRequest::kLookup: {
      const v1::Lookup& lookup = request.lookup();
      names_->Lookup(lookup.owner().empty() ? options_.user : lookup.owner(),
                     lookup.name(), lookup.version(), options_.user,
                     [this, waiting, id](absl::StatusOr<PublishedPtr> version) {
                       if (!waiting.expired())
                         OpenVersion(id, std::move(version));
                     });
      break;
    }
    case v1::NameRequest::kUnpublish:
      names_->Unpublish(options_.user, request.unpublish().name(), answer);
      break;
    case v1::NameRequest::kList: {
      v1::NameReply reply;
      bool more = false;
      for (const PublishedPtr& version :
           names_->List(options_.user, request.list().after_owner(),
                        request.list().after_name(), kMaxListed, &more)) {
        Describe(*version, options_.user, reply.add_published());
      }
      reply.set_more(more);
      AnswerNames(id, reply);
      break;
    }
    case v1::NameRequest::kSavedOf:
      AnswerNames(id, OpenSaved(request.saved_of()));
      break;
    case v1::NameRequest::KIND_NOT_SET:
      AnswerNames(id, absl::UnimplementedError(absl::StrCat(
                          "[names] the daemon does not know this request. Use "
                          "the same version on both sides")));
  }
  return absl::OkStatus();
}

void Executor::AnswerNames(uint64_t id, absl::StatusOr<v1::NameReply> reply) {
  const Counting counting(this);  // an answer may come at any time
  v1::ReadResult result;
  result.set_id(id);
  if (!reply.ok()) {
    StatusToProto(reply.status(), result.mutable_status());
  } else {
    reply->SerializeToString(result.mutable_data());
  }
  sink_->Reply(std::move(result));
}

absl::Status Executor::Publish(const v1::Publish& request,
                               PublishedTensors::Done done,
                               FailurePtr* failure) {
  absl::Status status = CheckName(request);
  if (!status.ok()) return status;
  // The version has a charge of its own, and outlives the session.
  const HeapMeter::Elsewhere elsewhere;
  auto version = std::make_shared<PublishedVersion>();
  version->owner = options_.user;
  version->name = request.name();
  version->durable = request.durable();
  version->writable = request.writable();
  version->readable_by_all = request.readers().all();
  version->readers.assign(request.readers().users().begin(),
                          request.readers().users().end());
  version->structure = request.structure();
  version->time = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  absl::flat_hash_set<std::string> keys;
  size_t reply_bytes = kReplyMargin + request.structure().size();
  std::vector<Value> tensors;
  for (const v1::Publish::Item& item : request.items()) {
    absl::StatusOr<Value> tensor = Resolve(item.handle(), failure);
    if (!tensor.ok()) return tensor.status();
    if (*failure != nullptr) return (*failure)->status;
    if (!keys.insert(item.key()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("[publish] keys must differ. Got '", item.key(),
                       "' twice in '", request.name(), "'"));
    }
    // A lookup is answered in one piece: key, handle, dtype, sizes, strides.
    reply_bytes += item.key().size() + 32 + 20 * (*tensor)->spec().rank();
    tensors.push_back(*std::move(tensor));
  }
  if (reply_bytes > options_.inline_limit_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[publish] the description of '", request.name(), "' takes ",
        reply_bytes, " bytes for ", request.items_size(), " tensors; at most ",
        options_.inline_limit_bytes,
        " fit. Publish it in parts, or concatenate small tensors"));
  }
  std::vector<std::shared_ptr<CachingAllocator>> allocators;
  for (size_t i = 0; i < tensors.size(); ++i) {
    PublishedVersion::Item item;
    item.key = request.items(static_cast<int>(i)).key();
    item.spec = tensors[i]->spec();
    item.requires_grad = tensors[i]->requires_grad();
    version->items.push_back(std::move(item));
  }
  status = request.writable() ? TakeStorages(tensors, version.get())
                              : CopyTensors(tensors, version.get());
  if (!status.ok()) return status;
  allocators.assign(tensors.size(), request.writable()
                                        ? owned_memory_
                                        : names_->Memory(options_.user));
  names_->Publish(std::move(version), allocators, std::move(done));
  return absl::OkStatus();
}

absl::Status Executor::TakeStorages(const std::vector<Value>& tensors,
                                    PublishedVersion* version) {
  std::set<const Storage*> counted;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const RefPtr<Storage>& storage = AsTensor(tensors[i])->storage();
    if (DevicePlace(tensors[i]->spec().device) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[publish] what is published with writable=True must be on the "
          "first device. Got '",
          version->items[i].key, "' ", tensors[i]->spec().ToString(), " in '",
          version->name, "'"));
    }
    if (storage->read_only() != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("[publish] a tensor of '", *storage->read_only(),
                       "' is read-only and cannot be published as writable '",
                       version->name, "'. Publish a clone()"));
    }
    version->items[i].storage = storage;
    if (counted.insert(storage.get()).second) {
      version->bytes += storage->block().bytes;
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::CopyTensors(const std::vector<Value>& tensors,
                                   PublishedVersion* version) {
  const std::shared_ptr<CachingAllocator> memory =
      names_->Memory(options_.user);
  // Tied weights, say, stay one. What is read-only already needs no copy.
  using Place = std::tuple<const Storage*, int64_t, Dims, Dims, DType>;
  std::map<Place, std::pair<RefPtr<Storage>, TensorSpec>> copies;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = *AsTensor(tensors[i]);
    const TensorSpec& spec = tensor.spec();
    auto& [copy, copied] = copies[{tensor.storage().get(), spec.offset,
                                   spec.shape, spec.strides, spec.dtype}];
    if (!copy) {
      // Readers find it on the first device.
      absl::StatusOr<Value> home = runner_.AtHome(tensors[i]);
      absl::StatusOr<RefPtr<Tensor>> made =
          home.ok()
              ? runner_.Copy(*AsTensor(*home), memory.get(), names_->stream())
              : home.status();
      if (!made.ok()) {
        return absl::Status(made.status().code(),
                            absl::StrCat("[publish] '", version->name,
                                         "': ", made.status().message()));
      }
      copy = (*made)->storage();
      copied = (*made)->spec();
      version->bytes += copy->block().bytes;
    }
    version->items[i].storage = copy;
    version->items[i].spec = copied;
  }
  // Readers use streams of their own.
  return device_->Synchronize(options_.stream);
}

RefPtr<Storage> Executor::Lent(const RefPtr<Storage>& storage) const {
  const StorageSharing* const sharing = storage->sharing();
  if (options_.account == nullptr || sharing == nullptr ||
      sharing->holders == nullptr ||
      sharing->holders->owner() == options_.account.get()) {
    return storage;
  }
  return MakeRef<Storage>(storage, options_.account);
}

void Executor::OpenVersion(uint64_t id, absl::StatusOr<PublishedPtr> version) {
  if (!version.ok()) return AnswerNames(id, version.status());
  const Counting counting(this);
  if (full()) {
    const absl::Status why = WhyFull();
    return AnswerNames(
        id, absl::Status(why.code(), absl::StrCat("[lookup] ", why.message())));
  }
  v1::NameReply reply;
  v1::Published* message = reply.add_published();
  Describe(**version, options_.user, message);
  message->set_structure((*version)->structure);
  for (const PublishedVersion::Item& item : (*version)->items) {
    v1::PublishedTensor* tensor = message->add_tensors();
    tensor->set_key(item.key);
    tensor->set_requires_grad(item.requires_grad);
    SpecToProto(item.spec, tensor->mutable_spec());
    const uint64_t handle = kServerHandles + ++server_handles_;
    tensor->set_handle(handle);
    store_.Put(handle, MakeRef<Tensor>(item.spec, Lent(item.storage),
                                       MakeRef<VersionCounter>()));
  }
  // The publisher may have a client that writes it at any time.
  if ((*version)->writable) runner_.set_guard(&guard_);
  AnswerNames(id, reply);
}

}  // namespace holdfast
