// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// LocalServer: requests that its thread does not wait for.
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/convert.h"
#include "proto/version.h"
#include "server/exec/worker.h"
#include "server/session/admin.h"
#include "server/session/session.h"
#include "server/transport/local_server.h"
#include "server/transport/shm_connection.h"

namespace holdfast {
namespace {

absl::StatusOr<UniqueFd> Duplicate(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[local] no descriptor is left: ", strerror(errno), "."));
  }
  return copy;
}

}  // namespace

bool LocalServer::ServeAside(const v1::LocalRequest& request, Client* client) {
  const bool block = request.kind_case() == v1::LocalRequest::kAllocate &&
                     request.allocate() >= kLargeBlock;
  switch (request.kind_case()) {
    case v1::LocalRequest::kHello:
    case v1::LocalRequest::kMap:
    case v1::LocalRequest::kAdmin:
      break;
    default:
      if (!block) return false;
  }
  client->departing = true;
  const bool asked = request.kind_case() == v1::LocalRequest::kAdmin;
  (block   ? errands_
   : asked ? asked_
           : calls_)
      .Run(client->identity.user.name,
           [departures = departures_, id = client->id, request,
            registry = registry_, peer = client->identity,
            session = client->session, socket = client->peer.socket()] {
             Departures::Answer answer;
             answer.client = id;
             absl::Status status = Answer(registry, peer, session.get(), socket,
                                          request, &answer);
             if (!status.ok()) {
               answer.fds.clear();
               StatusToProto(status, answer.reply.mutable_status());
             }
             departures->Add(std::move(answer));
           });
  return true;
}

absl::Status LocalServer::Answer(SessionRegistry* registry, const Peer& peer,
                                 Session* session,
                                 std::shared_ptr<const UniqueFd> socket,
                                 const v1::LocalRequest& request,
                                 Departures::Answer* answer) {
  switch (request.kind_case()) {
    case v1::LocalRequest::kHello:
      return AnswerHello(registry, peer, request.hello(), std::move(socket),
                         answer);
    case v1::LocalRequest::kMap:
      return AnswerMap(registry->worker(), session, request.map(), answer);
    case v1::LocalRequest::kAdmin: {
      absl::StatusOr<v1::AdminReply> reply =
          Administer(registry, peer, request.admin());
      if (reply.ok()) *answer->reply.mutable_admin() = *std::move(reply);
      return reply.status();
    }
    default: {
      absl::StatusOr<v1::Block> block =
          session->AllocateBlock(request.allocate());
      if (block.ok()) *answer->reply.mutable_block() = *std::move(block);
      return block.status();
    }
  }
}

absl::Status LocalServer::AnswerHello(SessionRegistry* registry,
                                      const Peer& peer,
                                      const v1::HelloRequest& request,
                                      std::shared_ptr<const UniqueFd> socket,
                                      Departures::Answer* answer) {
  // All that can fail for want of resources comes before Hello, which may
  // take the session over from an earlier client.
  absl::StatusOr<ShmChannel> channel = ShmChannel::Create();
  if (!channel.ok()) return channel.status();
  absl::StatusOr<UniqueFd> server_bell = Duplicate(channel->server_bell.get());
  if (!server_bell.ok()) return server_bell.status();
  answer->fds.push_back(std::move(channel->submission_fd));
  answer->fds.push_back(std::move(channel->completion_fd));
  answer->fds.push_back(*std::move(server_bell));
  answer->fds.push_back(std::move(channel->client_bell_fd));

  absl::StatusOr<SessionRegistry::Welcome> welcome =
      registry->Hello(request, peer, /*local=*/true);
  if (!welcome.ok()) return welcome.status();
  answer->session = welcome->session;
  answer->life = std::make_shared<ConnectionLife>(registry, answer->session);
  registry->Connect(
      answer->session, welcome->reply.session_token(),
      std::make_unique<ShmConnection>(
          *std::move(channel), registry->worker(), std::move(socket),
          answer->life,
          absl::c_linear_search(request.features(), kFeatureParts)));
  v1::HelloReply* reply = answer->reply.mutable_hello();
  *reply = std::move(welcome->reply);
  reply->set_inline_limit(
      std::min<uint64_t>(reply->inline_limit(), kShmInlineLimit));
  return absl::OkStatus();
}

absl::Status LocalServer::AnswerMap(Worker* worker, Session* session,
                                    uint64_t segment,
                                    Departures::Answer* answer) {
  absl::StatusOr<MemorySegment> found = absl::InternalError("not run");
  absl::StatusOr<UniqueFd> copy = absl::InternalError("not run");
  // On the worker, since a session that ends there closes its descriptors:
  // the number could by then be another file's.
  worker->RunAbout(session, [&] {
    found = session->FindSegment(segment);
    if (found.ok()) copy = Duplicate(found->fd);
  });
  if (!found.ok()) return found.status();
  if (!copy.ok()) return copy.status();
  answer->fds.push_back(*std::move(copy));
  answer->reply.mutable_segment()->set_id(found->id);
  answer->reply.mutable_segment()->set_bytes(found->bytes);
  return absl::OkStatus();
}

}  // namespace holdfast
