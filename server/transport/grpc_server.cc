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
#include "proto/admin.grpc.pb.h"
#include "proto/convert.h"
#include "proto/holdfast.grpc.pb.h"
#include "server/session/admin.h"
#include "server/transport/grpc_bulk.h"
#include "server/transport/grpc_stream.h"
#include "server/transport/listen_failure.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

// One command of 16 MiB and what is around it; others are told to be smaller.
constexpr int kMaxMessageBytes = 20 << 20;
// Of all methods but the stream and transfers: they take names and numbers.
constexpr size_t kMaxRequestBytes = 64 << 10;
// What gRPC may take for messages that are on their way, whoever sends them:
// above it, it reads less and then hangs up on some.
constexpr size_t kBufferBytes = size_t{512} << 20;
constexpr char kSessionKey[] = "holdfast-session";

// A stream that is over before it began.
class RefusedStream final : public StreamReactor {
 public:
  explicit RefusedStream(const absl::Status& status) {
    Finish(ToGrpcStatus(status));
  }
  void OnDone() override { delete this; }
};

// The request of a peer who may ask. Others' are not looked at.
template <typename Request>
absl::Status ParseRequest(const absl::Status& peer,
                          const grpc::ByteBuffer* bytes, Request* request) {
  if (!peer.ok()) return peer;
  if (bytes->Length() > kMaxRequestBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("[grpc] a request must have at most ", kMaxRequestBytes,
                     " bytes. Got ", bytes->Length(), "."));
  }
  grpc::ByteBuffer copy(*bytes);  // of references
  using Traits = grpc::SerializationTraits<Request>;
  if (!Traits::Deserialize(&copy, request).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("[grpc] a request must be a message of the method's. Got ",
                     bytes->Length(), " bytes that are none."));
  }
  return absl::OkStatus();
}

template <typename Reply>
void WriteReply(const Reply& reply, grpc::ByteBuffer* bytes) {
  bool own = false;
  grpc::SerializationTraits<Reply>::Serialize(reply, bytes, &own);
}

grpc::ServerUnaryReactor* FinishUnary(grpc::CallbackServerContext* context,
                                      const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
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

// All methods handle messages themselves: bulk methods and the stream for the
// sake of copies and of time, the others to know the peer first.
using v1::Holdfast;
using Methods = Holdfast::WithRawCallbackMethod_Hello<
    Holdfast::WithRawCallbackMethod_Stream<
        Holdfast::WithRawCallbackMethod_Upload<
            Holdfast::WithRawCallbackMethod_Download<
                Holdfast::WithRawCallbackMethod_Goodbye<
                    Holdfast::WithRawCallbackMethod_Cancel<
                        Holdfast::WithRawCallbackMethod_Stats<
                            Holdfast::Service>>>>>>>;
using v1::HoldfastAdmin;
using AdminMethods =
    HoldfastAdmin::WithRawCallbackMethod_Ask<HoldfastAdmin::Service>;

}  // namespace

class GrpcServer::Service final : public Methods {
 public:
  Service(SessionRegistry* registry, const Door* door)
      : registry_(registry), door_(door), uploads_(registry->limits()) {}

  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* bytes,
                                  grpc::ByteBuffer* reply_bytes) override {
    const absl::StatusOr<Peer> peer = Authenticate(*context);
    v1::HelloRequest request;
    absl::Status status = ParseRequest(peer.status(), bytes, &request);
    v1::HelloReply reply;
    if (status.ok()) {
      absl::StatusOr<SessionRegistry::Welcome> welcome =
          registry_->Hello(request, *peer, /*local=*/false);
      status = welcome.status();
      if (welcome.ok()) reply = std::move(welcome->reply);
    }
    if (!status.ok()) StatusToProto(status, reply.mutable_status());
    WriteReply(reply, reply_bytes);
    return FinishUnary(context, absl::OkStatus());
  }

  StreamReactor* Stream(grpc::CallbackServerContext* context) override {
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
    registry_->Connect(session, shown,
                       std::make_unique<GrpcConnection>(stream, life));
    stream->Start();
    return stream.get();
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* Upload(
      grpc::CallbackServerContext* context, grpc::ByteBuffer* reply) override {
    return NewUpload(registry_, Authenticate(*context), &uploads_, reply);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Download(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override {
    return NewDownload(registry_, Authenticate(*context), request);
  }

  grpc::ServerUnaryReactor* Goodbye(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* bytes,
                                    grpc::ByteBuffer* reply_bytes) override {
    const absl::StatusOr<Peer> peer = Authenticate(*context);
    v1::GoodbyeRequest request;
    const absl::Status good = ParseRequest(peer.status(), bytes, &request);
    if (!good.ok()) return FinishUnary(context, good);
    WriteReply(v1::GoodbyeReply(), reply_bytes);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const std::optional<absl::Status> now = registry_->Goodbye(
        request, peer->user, [reactor] { reactor->Finish(grpc::Status::OK); });
    if (now.has_value()) reactor->Finish(ToGrpcStatus(*now));
    return reactor;
  }

  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* bytes,
                                   grpc::ByteBuffer* reply_bytes) override {
    const absl::StatusOr<Peer> peer = Authenticate(*context);
    v1::CancelRequest request;
    absl::Status status = ParseRequest(peer.status(), bytes, &request);
    if (status.ok()) status = registry_->Cancel(request, peer->user);
    if (status.ok()) WriteReply(v1::CancelReply(), reply_bytes);
    return FinishUnary(context, status);
  }

  grpc::ServerUnaryReactor* Stats(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* bytes,
                                  grpc::ByteBuffer* reply_bytes) override {
    const absl::StatusOr<Peer> peer = Authenticate(*context);
    v1::StatsRequest request;
    const absl::Status status = ParseRequest(peer.status(), bytes, &request);
    if (status.ok()) {
      WriteReply(registry_->StatsFor(peer->user, request), reply_bytes);
    }
    return FinishUnary(context, status);
  }

 private:
  absl::StatusOr<Peer> Authenticate(
      const grpc::CallbackServerContext& context) const {
    absl::StatusOr<Peer> peer =
        registry_->trust()->Remote(DescribeCall(context, *door_));
    if (!peer.ok()) registry_->NoteRefused(peer.status().code());
    return peer;
  }

  SessionRegistry* const registry_;
  const Door* const door_;
  UploadBudget uploads_;
};

// proto/admin.proto.
class GrpcServer::AdminService final : public AdminMethods {
 public:
  AdminService(SessionRegistry* registry, const Door* door)
      : registry_(registry), door_(door) {}

  grpc::ServerUnaryReactor* Ask(grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer* bytes,
                                grpc::ByteBuffer* reply_bytes) override {
    const absl::StatusOr<Peer> peer =
        registry_->trust()->Remote(DescribeCall(*context, *door_));
    v1::AdminRequest request;
    const absl::Status status = ParseRequest(peer.status(), bytes, &request);
    if (!status.ok()) return FinishUnary(context, status);
    absl::StatusOr<v1::AdminReply> answer =
        Administer(registry_, *peer, request);
    if (answer.ok()) WriteReply(*answer, reply_bytes);
    return FinishUnary(context, answer.status());
  }

 private:
  SessionRegistry* const registry_;
  const Door* const door_;
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

GrpcServer::GrpcServer() = default;

GrpcServer::~GrpcServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    SessionRegistry* registry, const Options& options) {
  std::string host;
  absl::Status status =
      CheckListenAddress(options.address, options.allow_remote, &host);
  if (!status.ok()) return status;
  if (!IsLoopback(host)) {
    status = CheckRemoteTrust(options, *registry->trust());
    if (!status.ok()) return status;
  }
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
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.address, credentials, &port);
  builder.RegisterService(&result->running_->service);
  builder.RegisterService(&result->running_->admin);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  grpc::ResourceQuota quota("holdfastd");
  quota.Resize(kBufferBytes);
  builder.SetResourceQuota(quota);
  // A second daemon on the port is a mistake to report, not to share it with.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
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
  if (result->running_->server == nullptr || port == 0) {
    return ListenFailure("listen", options.address);
  }
  result->running_->server->GetHealthCheckService()->SetServingStatus(
      Holdfast::service_full_name(), true);
  result->running_->door.port.store(port);
  result->address_ = absl::StrCat(host, ":", port);
  return result;
}

void GrpcServer::StopServing() {
  running_->server->GetHealthCheckService()->SetServingStatus(false);
}

void GrpcServer::Stop(absl::Duration grace) {
  if (running_ == nullptr) return;
  if (running_->server != nullptr) {
    running_->server->Shutdown(absl::ToChronoTime(absl::Now() + grace));
    running_->server->Wait();
  }
  running_.reset();
}

}  // namespace holdfast
