// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// gRPC says of a failed handshake only that it failed. This does one by itself
// and puts the reason in words.
#include <sys/socket.h>
#include <sys/time.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/credentials.h"
#include "client/default_address.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/ssl.h"
#include "openssl/x509v3.h"

namespace holdfast::client {
namespace {

constexpr int kTimeoutSeconds = 3;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Tls = std::unique_ptr<SSL, decltype(&SSL_free)>;

Bio Memory(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
             BIO_free_all);
}

void AddRoots(const std::string& pem, SSL_CTX* context) {
  Bio memory = Memory(pem);
  while (X509* root =
             PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root);
    X509_free(root);
  }
}

void AddOwn(const LoadedCredentials& credentials, SSL_CTX* context) {
  if (credentials.certificate.empty()) return;
  Bio memory = Memory(credentials.certificate);
  X509* own = PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr);
  if (own != nullptr) SSL_CTX_use_certificate(context, own);
  X509_free(own);
  memory = Memory(credentials.key);
  EVP_PKEY* key =
      PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, nullptr);
  if (key != nullptr) SSL_CTX_use_PrivateKey(context, key);
  EVP_PKEY_free(key);
}

// What OpenSSL says last, and its reason's number.
std::string LastError(int* reason) {
  const unsigned long error = ERR_peek_last_error();  // NOLINT: OpenSSL's
  *reason = ERR_GET_REASON(error);
  const char* text = ERR_reason_error_string(error);
  ERR_clear_error();
  return text == nullptr ? "" : text;
}

std::string OfCertificate(long verdict,  // NOLINT: OpenSSL's
                          const std::string& address) {
  const std::string text = X509_verify_cert_error_string(verdict);
  switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat("the certificate of the daemon at ", address,
                          " has expired; whoever runs it must renew it");
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return absl::StrCat("the daemon's certificate is not for the host in ",
                          address, " (", text,
                          "); connect by a name that it is for");
    default:
      return absl::StrCat("the certificate of the daemon at ", address,
                          " is not to be trusted (", text,
                          "); ca= must name the file of who signed it");
  }
}

}  // namespace

std::string ExplainTls(const std::string& address,
                       const LoadedCredentials& credentials) {
  if (absl::StartsWith(address, kGrpcOverSocket)) return "";
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr) return "";
  AddRoots(credentials.roots, context.get());
  AddOwn(credentials, context.get());
  if (credentials.tls) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  Bio socket(BIO_new_connect(address.c_str()), BIO_free_all);
  if (socket == nullptr || BIO_do_connect(socket.get()) <= 0) {
    ERR_clear_error();
    return "";  // nobody is there: no matter of TLS
  }
  int fd = -1;
  BIO_get_fd(socket.get(), &fd);
  const timeval timeout = {kTimeoutSeconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));

  Tls tls(SSL_new(context.get()), SSL_free);
  const std::string host = absl::StrReplaceAll(
      address.substr(0, address.rfind(':')), {{"[", ""}, {"]", ""}});
  X509_VERIFY_PARAM* expected = SSL_get0_param(tls.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size());
    SSL_set_tlsext_host_name(tls.get(), host.c_str());
  }
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls.get(), kHttp2, sizeof(kHttp2));
  BIO* const raw = socket.release();
  SSL_set_bio(tls.get(), raw, raw);
  ERR_clear_error();
  const bool done = SSL_connect(tls.get()) == 1;
  if (!credentials.tls) {
    return done ? absl::StrCat("the daemon at ", address,
                               " speaks TLS: give ca= (HOLDFAST_CA)")
                : "";
  }
  int reason = 0;
  if (!done) {
    const long verdict = SSL_get_verify_result(tls.get());  // NOLINT
    const std::string text = LastError(&reason);
    if (verdict != X509_V_OK) return OfCertificate(verdict, address);
    if (reason == SSL_R_WRONG_VERSION_NUMBER || text.empty()) {
      return absl::StrCat(
          "the daemon at ", address,
          " does not speak TLS: leave out ca= (HOLDFAST_CA), or "
          "start it with --tls_certificate and --tls_key");
    }
    return absl::StrCat("TLS with the daemon at ", address, " failed: ", text);
  }
  // It judges our certificate after its own handshake is through.
  char byte = 0;
  if (SSL_read(tls.get(), &byte, 1) > 0) return "";
  const std::string text = LastError(&reason);
  if (text.empty()) return "";
  return absl::StrCat("the daemon at ", address,
                      " refused our certificate: ", text,
                      " (certificate=, key=: HOLDFAST_CERTIFICATE, "
                      "HOLDFAST_KEY)");
}

}  // namespace holdfast::client
