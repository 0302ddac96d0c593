// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/grpc_server.h"

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
#include "proto/convert.h"
#include "proto/holdfast.grpc.pb.h"
#include "server/transport/grpc_bulk.h"
#include "server/transport/grpc_stream.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr int kMaxMessageBytes = 64 << 20;
constexpr char kSessionKey[] = "holdfast-session";

// A stream that is over before it began.
class RefusedStream final : public StreamReactor {
 public:
  explicit RefusedStream(const absl::Status& status) {
    Finish(ToGrpcStatus(status));
  }
  void OnDone() override { delete this; }
};

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

// Bulk methods and the stream handle messages themselves, for the sake of
// copies and of time.
using v1::Holdfast;
using Methods =
    Holdfast::WithCallbackMethod_Hello<Holdfast::WithRawCallbackMethod_Stream<
        Holdfast::WithRawCallbackMethod_Upload<
            Holdfast::WithRawCallbackMethod_Download<
                Holdfast::WithCallbackMethod_Goodbye<
                    Holdfast::WithCallbackMethod_Stats<Holdfast::Service>>>>>>;

}  // namespace

class GrpcServer::Service final : public Methods {
 public:
  explicit Service(SessionRegistry* registry)
      : registry_(registry), uploads_(registry->limits()) {}

  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* context,
                                  const v1::HelloRequest* request,
                                  v1::HelloReply* reply) override {
    absl::StatusOr<SessionRegistry::Welcome> welcome =
        registry_->Hello(*request, /*local=*/false);
    if (welcome.ok()) {
      *reply = std::move(welcome->reply);
    } else {
      StatusToProto(welcome.status(), reply->mutable_status());
    }
    return FinishUnary(context, absl::OkStatus());
  }

  StreamReactor* Stream(grpc::CallbackServerContext* context) override {
    const auto& metadata = context->client_metadata();
    auto token = metadata.find(kSessionKey);
    if (token == metadata.end()) {
      return new RefusedStream(absl::InvalidArgumentError(absl::StrCat(
          "[stream] the metadata must hold the session's token under '",
          kSessionKey, "'; Hello gives it.")));
    }
    std::shared_ptr<Session> session = registry_->FindByToken(
        std::string(token->second.data(), token->second.size()));
    if (session == nullptr) {
      registry_->NoteRefused(absl::StatusCode::kNotFound);
      return new RefusedStream(absl::NotFoundError(
          "[stream] no session has this token; it ended, or never was."));
    }
    auto life = std::make_shared<ConnectionLife>(registry_, session);
    std::shared_ptr<GrpcStream> stream =
        GrpcStream::Create(context, registry_->worker(), life);
    registry_->Connect(session, std::make_unique<GrpcConnection>(stream, life));
    stream->Start();
    return stream.get();
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* Upload(
      grpc::CallbackServerContext*, grpc::ByteBuffer* reply) override {
    return NewUpload(registry_, &uploads_, reply);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Download(
      grpc::CallbackServerContext*, const grpc::ByteBuffer* request) override {
    return NewDownload(registry_, request);
  }

  grpc::ServerUnaryReactor* Goodbye(grpc::CallbackServerContext* context,
                                    const v1::GoodbyeRequest* request,
                                    v1::GoodbyeReply*) override {
    return FinishUnary(
        context, registry_->Goodbye(request->session_token(), request->keep()));
  }

  grpc::ServerUnaryReactor* Stats(grpc::CallbackServerContext* context,
                                  const v1::StatsRequest*,
                                  v1::StatsReply* reply) override {
    *reply = registry_->Stats();
    return FinishUnary(context, absl::OkStatus());
  }

 private:
  SessionRegistry* const registry_;
  UploadBudget uploads_;
};

struct GrpcServer::Running {
  explicit Running(SessionRegistry* registry) : service(registry) {}

  Service service;
  std::unique_ptr<grpc::Server> server;
};

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
  const bool loopback =
      *host == "localhost" || *host == "[::1]" ||
      (absl::StartsWith(*host, "127.") &&
       host->find_first_not_of("0123456789.") == std::string::npos);
  if (!loopback && !allow_remote) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", flag,
        "] whoever reaches the port is served, so that it "
        "listens on this machine's own addresses only (127.0.0.1, localhost, "
        "[::1]) unless --allow_remote is given. Got '",
        address, "'."));
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

  gpr_set_log_function(LogFromGrpc);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<GrpcServer> result(new GrpcServer);
  result->running_ = std::make_unique<Running>(registry);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&result->running_->service);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
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
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 128);
  result->running_->server = builder.BuildAndStart();
  if (result->running_->server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("[listen] cannot listen on ", options.address,
                     "; is the port taken, the host this machine's?"));
  }
  result->running_->server->GetHealthCheckService()->SetServingStatus(
      Holdfast::service_full_name(), true);
  result->address_ = absl::StrCat(host, ":", port);
  return result;
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
