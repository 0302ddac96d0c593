// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/credentials.h"

#include <errno.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/default_address.h"
#include "client/remembered_credentials.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace holdfast::client {
namespace {

constexpr char kSystem[] = "system";
constexpr char kSystemRoots[] = "/etc/ssl/certs/ca-certificates.crt";

std::string FromEnvironment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     const std::string& what) {
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat("[connect] ", what,
                     " must name a file that can be read. "
                     "Got '",
                     path, "': ", strerror(errno == 0 ? EIO : errno), "."));
  }
  return text.str();
}

bool IsLoopback(const std::string& address) {
  return absl::StartsWith(address, "localhost:") ||
         absl::StartsWith(address, kGrpcOverSocket) ||
         absl::StartsWith(address, "127.") ||
         absl::StartsWith(address, "[::1]:");
}

// PEM text with a certificate that is still good.
absl::Status CheckCertificate(const std::string& pem, const std::string& path,
                              const std::string& what) {
  std::unique_ptr<BIO, decltype(&BIO_free)> memory(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr), X509_free);
  ERR_clear_error();
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("[connect] ", what,
                     " must name a certificate in PEM "
                     "format. Got '",
                     path, "', which holds none."));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("[connect] the certificate ", path, " (", what,
                     ") has expired. Have it renewed."));
  }
  return absl::OkStatus();
}

struct Remembered {
  std::mutex mutex;
  std::map<std::string, Credentials> by_address;
};

Remembered& All() {
  static auto* const all = new Remembered;  // never destroyed
  return *all;
}

}  // namespace

void RememberCredentials(const std::string& address,
                         const Credentials& credentials) {
  if (credentials.empty()) return;
  std::lock_guard<std::mutex> lock(All().mutex);
  All().by_address[address] = credentials;
}

absl::StatusOr<Credentials> FindCredentials(const std::string& address,
                                            const Credentials& given) {
  Credentials result = given;
  {
    std::lock_guard<std::mutex> lock(All().mutex);
    const auto known = All().by_address.find(address);
    if (given.empty() && known != All().by_address.end()) {
      result = known->second;
    }
  }
  if (result.token.empty()) result.token = FromEnvironment("HOLDFAST_TOKEN");
  if (const std::string path = FromEnvironment("HOLDFAST_TOKEN_FILE");
      result.token.empty() && !path.empty()) {
    absl::StatusOr<std::string> text = ReadFile(path, "HOLDFAST_TOKEN_FILE");
    if (!text.ok()) return text.status();
    result.token = *std::move(text);
  }
  result.token = std::string(absl::StripAsciiWhitespace(result.token));
  // What comes through a socket of this machine needs no TLS, which the
  // variables ask for: it was meant for other daemons.
  if (absl::StartsWith(address, kGrpcOverSocket)) return result;
  if (result.ca.empty()) result.ca = FromEnvironment("HOLDFAST_CA");
  if (result.certificate.empty() && result.key.empty()) {
    result.certificate = FromEnvironment("HOLDFAST_CERTIFICATE");
    result.key = FromEnvironment("HOLDFAST_KEY");
  }
  return result;
}

absl::StatusOr<LoadedCredentials> LoadCredentials(const std::string& address,
                                                  const Credentials& given) {
  absl::StatusOr<Credentials> found = FindCredentials(address, given);
  if (!found.ok()) return found.status();
  LoadedCredentials loaded;
  loaded.token = found->token;
  for (const char c : loaded.token) {
    // Metadata can hold no others, and what has them is no token.
    if (c <= ' ' || c > '~') {
      return absl::InvalidArgumentError(
          "[connect] a token must be the text that holdfast token create "
          "printed (hf_...). Got other characters in it.");
    }
  }
  loaded.tls = !found->ca.empty();
  if (found->certificate.empty() != found->key.empty()) {
    return absl::InvalidArgumentError(
        "[connect] certificate= and key= (HOLDFAST_CERTIFICATE, HOLDFAST_KEY) "
        "go together. Got only one of them.");
  }
  if (!found->certificate.empty() && !loaded.tls) {
    return absl::InvalidArgumentError(
        "[connect] a client certificate needs TLS: give ca= (HOLDFAST_CA), the "
        "file of who signed the daemon's certificate, or \"system\".");
  }
  if (!loaded.token.empty() && !loaded.tls && !found->allow_plaintext_token &&
      !IsLoopback(address)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[connect] a token must not travel in the clear to ", address,
        ". Use TLS: give ca= (HOLDFAST_CA), the file of who signed the "
        "daemon's "
        "certificate, or \"system\". Where the network itself is trusted: "
        "allow_plaintext_token=True."));
  }
  if (!loaded.tls) return loaded;
  const std::string ca = found->ca == kSystem ? kSystemRoots : found->ca;
  absl::StatusOr<std::string> text = ReadFile(ca, "ca=");
  if (!text.ok()) return text.status();
  loaded.roots = *std::move(text);
  if (found->ca != kSystem) {
    absl::Status status = CheckCertificate(loaded.roots, ca, "ca=");
    if (!status.ok()) return status;
  }
  if (found->certificate.empty()) return loaded;
  text = ReadFile(found->certificate, "certificate=");
  if (!text.ok()) return text.status();
  loaded.certificate = *std::move(text);
  absl::Status status =
      CheckCertificate(loaded.certificate, found->certificate, "certificate=");
  if (!status.ok()) return status;
  text = ReadFile(found->key, "key=");
  if (!text.ok()) return text.status();
  loaded.key = *std::move(text);
  return loaded;
}

}  // namespace holdfast::client
