// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/grpc_server.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "proto/admin.pb.h"
#include "proto/convert.h"
#include "proto/holdfast.grpc.pb.h"
#include "server/session/admin.h"
#include "server/transport/errands.h"
#include "server/transport/grpc_bulk.h"
#include "server/transport/grpc_listener.h"
#include "server/transport/grpc_methods.h"
#include "server/transport/grpc_stream.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

// Larger commands travel in parts, bytes of tensors in chunks of 1 MiB.
constexpr int kMaxMessageBytes = GrpcStream::kMaxMessageBytes;
// Of a user's calls, whose messages are on their way at a time.
constexpr int kRequestTurns = 8;
constexpr int kUploadTurns = 16;
// Of all methods but the stream and transfers: they take names and numbers.
constexpr size_t kMaxRequestBytes = 64 << 10;
// What gRPC may take for messages that are on their way, whoever sends them:
// above it, it reads less and then hangs up on some.
constexpr size_t kBufferBytes = size_t{512} << 20;
constexpr char kSessionKey[] = "holdfast-session";
// Of a user's calls that wait for the worker: their streams' first and Hello;
// and what admins ask, which may be to end what those wait for.
constexpr int kCallThreads = 8;
constexpr int kAskThreads = 4;

// A stream that is over before it began.
class RefusedStream final : public StreamReactor {
 public:
  explicit RefusedStream(const absl::Status& status) {
    Finish(ToGrpcStatus(status));
  }
  void OnDone() override { delete this; }
};

template <typename Message>
absl::Status ParseRequest(const grpc::ByteBuffer& bytes, Message* request) {
  if (bytes.Length() > kMaxRequestBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("[grpc] a request must have at most ", kMaxRequestBytes,
                     " bytes. Got ", bytes.Length(), "."));
  }
  grpc::ByteBuffer copy(bytes);  // of references
  using Traits = grpc::SerializationTraits<Message>;
  if (!Traits::Deserialize(&copy, request).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("[grpc] a request must be a message of the method's. Got ",
                     bytes.Length(), " bytes that are none."));
  }
  return absl::OkStatus();
}

template <typename Reply>
void WriteReply(const Reply& reply, grpc::ByteBuffer* bytes) {
  bool own = false;
  grpc::SerializationTraits<Reply>::Serialize(reply, bytes, &own);
}

// What gRPC has to say is for its own developers mostly: a client that hangs
// up is an error to it. Errors of ours are returned by Start.
void LogFromGrpc(gpr_log_func_args* args) {
  spdlog::debug("grpc: {}:{} {}", args->file, args->line, args->message);
}

// What is the same for all calls.
struct Door {
  std::string host;
  std::atomic<int> port{0};  // known once the server listens
  bool encrypted = false;
  std::shared_ptr<GrpcListener> listener;
};

// The call as the authenticator judges it.
Authenticator::Call DescribeCall(const grpc::CallbackServerContext& context,
                                 const Door& door) {
  Authenticator::Call call;
  call.peer = context.peer();
  call.listen = absl::StrCat(door.host, ":", door.port.load());
  call.encrypted = door.encrypted;
  const auto& metadata = context.client_metadata();
  const auto authorization = metadata.find("authorization");
  if (authorization != metadata.end()) {
    call.authorization.assign(authorization->second.data(),
                              authorization->second.size());
  }
  const auto authenticated = context.auth_context();
  if (authenticated != nullptr && authenticated->IsPeerAuthenticated()) {
    const auto names =
        authenticated->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
    if (!names.empty()) {
      call.certificate.assign(names[0].data(), names[0].size());
    }
  }
  return call;
}

// Who calls, if it may. Its connection is that user's from now on.
absl::StatusOr<Peer> Admit(SessionRegistry* registry, const Door& door,
                           const grpc::CallbackServerContext& context) {
  const Authenticator::Call call = DescribeCall(context, door);
  absl::StatusOr<Peer> peer = registry->trust()->Remote(call);
  if (!peer.ok()) return peer.status();
  const std::string& user = peer->user.name;
  const absl::Status room = door.listener->Admit(
      call.peer, user, registry->LimitsOf(user).max_connections());
  if (!room.ok()) return room;
  return peer;
}

using v1::Holdfast;

}  // namespace

// Messages are bytes: bulk methods and the stream save copies and time so.
class GrpcServer::Service final : public GrpcMethods {
 public:
  Service(SessionRegistry* registry, const Door* door)
      : registry_(registry), door_(door), uploads_(registry->limits()) {
    AddUp("/holdfast.v1.Holdfast/Hello",
          [this](Context* c, Bytes* reply) { return Hello(*c, reply); });
    AddBoth("/holdfast.v1.Holdfast/Stream",
            [this](Context* c) { return Stream(c); });
    AddUp("/holdfast.v1.Holdfast/Upload", [this](Context* c, Bytes* reply) {
      return NewUpload(registry_, Authenticate(*c), &uploads_, &upload_turns_,
                       reply);
    });
    AddBoth("/holdfast.v1.Holdfast/Download", [this](Context* c) {
      return NewDownload(registry_, Authenticate(*c), &turns_);
    });
    AddUp("/holdfast.v1.Holdfast/Goodbye",
          [this](Context* c, Bytes* reply) { return Goodbye(*c, reply); });
    AddUp("/holdfast.v1.Holdfast/Cancel",
          [this](Context* c, Bytes* reply) { return Cancel(*c, reply); });
    AddUp("/holdfast.v1.Holdfast/Stats",
          [this](Context* c, Bytes* reply) { return Stats(*c, reply); });
  }

 private:
  UpReactor* Hello(const Context& context, Bytes* reply) {
    const absl::StatusOr<Peer> peer = Authenticate(context);
    if (!peer.ok()) {
      WriteRefusal(peer.status(), reply);
      return NewAnswered(absl::OkStatus());
    }
    return NewRequest(
        peer, &turns_,
        [this, reply](const Peer& peer, const Bytes& bytes,
                      FinishRequest finish) {
          v1::HelloRequest request;
          const absl::Status status = ParseRequest(bytes, &request);
          if (!status.ok()) {
            WriteRefusal(status, reply);
            return finish(absl::OkStatus());
          }
          // gRPC's threads are few, and this waits for the worker.
          calls_.Run(peer.user.name,
                     [this, reply, peer, finish, request = std::move(request)] {
                       const absl::StatusOr<SessionRegistry::Welcome> welcome =
                           registry_->Hello(request, peer, /*local=*/false);
                       if (welcome.ok()) {
                         WriteReply(welcome->reply, reply);
                       } else {
                         WriteRefusal(welcome.status(), reply);
                       }
                       finish(absl::OkStatus());
                     });
        });
  }

  StreamReactor* Stream(Context* context) {
    const absl::StatusOr<Peer> peer = Authenticate(*context);
    if (!peer.ok()) return new RefusedStream(peer.status());
    const auto& metadata = context->client_metadata();
    auto token = metadata.find(kSessionKey);
    if (token == metadata.end()) {
      return new RefusedStream(absl::InvalidArgumentError(absl::StrCat(
          "[stream] the metadata must hold the session's token under '",
          kSessionKey, "'; Hello gives it.")));
    }
    const std::string shown(token->second.data(), token->second.size());
    std::shared_ptr<Session> session =
        registry_->FindByToken(shown, peer->user);
    if (session == nullptr) {
      // Hello counts who gets no session. This may be one who got it and closed
      // it before the stream came here.
      return new RefusedStream(absl::NotFoundError(
          "[stream] no session has this token; it ended, or never was."));
    }
    auto life = std::make_shared<ConnectionLife>(registry_, session);
    std::shared_ptr<GrpcStream> stream =
        GrpcStream::Create(context, registry_->worker(), life);
    // It waits for the worker, as Hello does. If the client is gone before the
    // session has its connection, that could not be told yet.
    const std::weak_ptr<const GrpcListener> door = door_->listener;
    auto look = [door, place = std::string(context->peer())] {
      const std::shared_ptr<const GrpcListener> listener = door.lock();
      return listener != nullptr && listener->HasEnded(place);
    };
    calls_.Run(peer->user.name, [this, session, shown, stream, life, look] {
      registry_->Connect(session, shown,
                         std::make_unique<GrpcConnection>(stream, life, look));
      stream->Start();
      if (stream->closing()) ReportHangUp(life);
    });
    return stream.get();
  }

  UpReactor* Goodbye(const Context& context, Bytes* reply) {
    return NewRequest(
        Authenticate(context), &turns_,
        [this, reply](const Peer& peer, const Bytes& bytes,
                      FinishRequest finish) {
          v1::GoodbyeRequest request;
          const absl::Status good = ParseRequest(bytes, &request);
          if (!good.ok()) return finish(good);
          WriteReply(v1::GoodbyeReply(), reply);
          const std::optional<absl::Status> now = registry_->Goodbye(
              request, peer.user, [finish] { finish(absl::OkStatus()); });
          if (now.has_value()) finish(*now);
        });
  }

  UpReactor* Cancel(const Context& context, Bytes* reply) {
    return NewRequest(Authenticate(context), &turns_,
                      [this, reply](const Peer& peer, const Bytes& bytes,
                                    FinishRequest finish) {
                        v1::CancelRequest request;
                        absl::Status status = ParseRequest(bytes, &request);
                        if (status.ok())
                          status = registry_->Cancel(request, peer.user);
                        if (status.ok()) WriteReply(v1::CancelReply(), reply);
                        finish(status);
                      });
  }

  UpReactor* Stats(const Context& context, Bytes* reply) {
    return NewRequest(
        Authenticate(context), &turns_,
        [this, reply](const Peer& peer, const Bytes& bytes,
                      FinishRequest finish) {
          v1::StatsRequest request;
          const absl::Status status = ParseRequest(bytes, &request);
          if (status.ok()) {
            WriteReply(registry_->StatsFor(peer.user, request), reply);
          }
          finish(status);
        });
  }

  absl::StatusOr<Peer> Authenticate(const Context& context) const {
    absl::StatusOr<Peer> peer = Admit(registry_, *door_, context);
    if (!peer.ok()) registry_->NoteRefused(peer.status().code());
    return peer;
  }

  static void WriteRefusal(const absl::Status& status, Bytes* reply_bytes) {
    v1::HelloReply reply;
    StatusToProto(status, reply.mutable_status());
    WriteReply(reply, reply_bytes);
  }

  SessionRegistry* const registry_;
  const Door* const door_;
  UploadBudget uploads_;
  MessageTurns turns_{kRequestTurns}, upload_turns_{kUploadTurns};
  Errands calls_{kCallThreads};
};

// proto/admin.proto.
class GrpcServer::AdminService final : public GrpcMethods {
 public:
  AdminService(SessionRegistry* registry, const Door* door)
      : registry_(registry), door_(door) {
    AddUp("/holdfast.v1.HoldfastAdmin/Ask",
          [this](Context* c, Bytes* reply) { return Ask(*c, reply); });
  }

 private:
  UpReactor* Ask(const Context& context, Bytes* reply) {
    return NewRequest(
        Admit(registry_, *door_, context), &turns_,
        [this, reply](const Peer& peer, const Bytes& bytes,
                      FinishRequest finish) {
          v1::AdminRequest request;
          const absl::Status status = ParseRequest(bytes, &request);
          if (!status.ok()) return finish(status);
          asked_.Run(peer.user.name,
                     [this, reply, peer, finish, request = std::move(request)] {
                       absl::StatusOr<v1::AdminReply> answer =
                           Administer(registry_, peer, request);
                       if (answer.ok()) WriteReply(*answer, reply);
                       finish(answer.status());
                     });
        });
  }

  SessionRegistry* const registry_;
  const Door* const door_;
  MessageTurns turns_{kRequestTurns};
  Errands asked_{kAskThreads};
};

struct GrpcServer::Running {
  explicit Running(SessionRegistry* registry)
      : service(registry, &door), admin(registry, &door) {}

  Door door;
  Service service;
  AdminService admin;
  std::unique_ptr<grpc::Server> server;
};

namespace {

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" ||
         (absl::StartsWith(host, "127.") &&
          host.find_first_not_of("0123456789.") == std::string::npos);
}

}  // namespace

absl::Status CheckListenAddress(const std::string& address, bool allow_remote,
                                std::string* host, absl::string_view flag) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", flag, "] --", flag, " must be host:port. Got '", address, "'."));
  }
  *host = address.substr(0, colon);
  if (!IsLoopback(*host) && !allow_remote) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", flag,
        "] the daemon listens on this machine's own addresses only (127.0.0.1, "
        "localhost, [::1]) unless --allow_remote is given. Got '",
        address, "'."));
  }
  return absl::OkStatus();
}

absl::Status GrpcServer::CheckRemoteTrust(const Options& options,
                                          const Authenticator& trust) {
  const bool tls = !options.tls.certificate.empty();
  if (!trust.asks_for_credentials() && !trust.options().allow_anonymous) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[listen] peers from other machines must show who they are: give "
        "--token_file (with --tls_certificate and --tls_key) or "
        "--tls_client_ca. Where whoever reaches the port may use the daemon: "
        "--allow_anonymous. Got --listen=",
        options.address, "."));
  }
  if (!trust.options().token_file.empty() && !tls &&
      !trust.options().allow_plaintext_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[listen] tokens must not travel in the clear: give --tls_certificate "
        "and --tls_key. Where the network itself is trusted: "
        "--allow_plaintext_tokens. Got --listen=",
        options.address, "."));
  }
  return absl::OkStatus();
}

absl::Status GrpcServer::Check(const Options& options,
                               const Authenticator& trust, std::string* host) {
  const absl::Status status =
      CheckListenAddress(options.address, options.allow_remote, host);
  if (!status.ok() || IsLoopback(*host)) return status;
  return CheckRemoteTrust(options, trust);
}

GrpcServer::GrpcServer() = default;

GrpcServer::~GrpcServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    SessionRegistry* registry, const Options& options) {
  std::string host;
  const absl::Status status = Check(options, *registry->trust(), &host);
  if (!status.ok()) return status;
  std::shared_ptr<grpc::ServerCredentials> credentials =
      grpc::InsecureServerCredentials();
  if (!options.tls.certificate.empty() || !options.tls.key.empty() ||
      !options.tls.client_ca.empty()) {
    absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> tls =
        LoadTls(options.tls);
    if (!tls.ok()) return tls.status();
    credentials = *std::move(tls);
  }

  gpr_set_log_function(LogFromGrpc);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<GrpcServer> result(new GrpcServer);
  result->running_ = std::make_unique<Running>(registry);
  result->running_->door.host = host;
  result->running_->door.encrypted = !options.tls.certificate.empty();
  int port = 0;
  if (!absl::SimpleAtoi(options.address.substr(host.size() + 1), &port)) {
    return absl::InternalError("[listen] the port was checked");
  }
  absl::StatusOr<std::unique_ptr<GrpcListener>> listener =
      GrpcListener::Listen(host, port, options.max_strangers);
  if (!listener.ok()) return listener.status();
  result->running_->door.listener = *std::move(listener);
  GrpcListener* const door = result->running_->door.listener.get();
  grpc::ServerBuilder builder;
  using External = grpc::ServerBuilder::experimental_type;
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      External::ExternalConnectionType::FROM_FD, credentials);
  builder.RegisterService(&result->running_->service);
  builder.RegisterService(&result->running_->admin);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  grpc::ResourceQuota quota("holdfastd");
  quota.Resize(kBufferBytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
  // A peer whose machine or link died is noticed within a minute; clients may
  // look after us more often than that.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // One connection's calls: a stream, and bulk transfers beside it.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 64);
  result->running_->server = builder.BuildAndStart();
  if (result->running_->server == nullptr) {
    return absl::InternalError("[listen] gRPC does not start");
  }
  result->running_->server->GetHealthCheckService()->SetServingStatus(
      Holdfast::service_full_name(), true);
  result->running_->door.port.store(door->port());
  result->address_ = absl::StrCat(host, ":", door->port());
  door->Start(std::move(acceptor));
  return result;
}

void GrpcServer::StopServing() {
  running_->server->GetHealthCheckService()->SetServingStatus(false);
}

void GrpcServer::Stop(absl::Duration grace) {
  if (running_ == nullptr) return;
  if (running_->door.listener != nullptr) running_->door.listener->Stop();
  if (running_->server != nullptr) {
    running_->server->Shutdown(absl::ToChronoTime(absl::Now() + grace));
    running_->server->Wait();
  }
  running_.reset();
}

}  // namespace holdfast
