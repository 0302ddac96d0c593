// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/tls_credentials.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace holdfast {
namespace {

constexpr unsigned int kLookAgainSeconds = 30;

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using File = std::unique_ptr<FILE, decltype(&fclose)>;

absl::StatusOr<File> Open(const std::string& path, absl::string_view flag) {
  File file(fopen(path.c_str(), "re"), fclose);
  if (file == nullptr) {
    const int error = errno;
    const std::string cure =
        error == EACCES
            ? absl::StrCat(" Let the daemon's group read it: chgrp ", getegid(),
                           " ", path, " && chmod 640 ", path, ".")
            : "";
    return absl::InvalidArgumentError(
        absl::StrCat("[tls] --", flag, " must name a file in PEM format. Got '",
                     path, "': ", strerror(error), ".", cure));
  }
  return file;
}

std::string Text(const ASN1_TIME* time) {
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  ASN1_TIME_print(out.get(), time);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);  // NOLINT: OpenSSL's
  return std::string(data, size);
}

absl::StatusOr<Certificate> ReadCertificate(const std::string& path,
                                            absl::string_view flag) {
  absl::StatusOr<File> file = Open(path, flag);
  if (!file.ok()) return file.status();
  Certificate certificate(PEM_read_X509(file->get(), nullptr, nullptr, nullptr),
                          X509_free);
  ERR_clear_error();
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[tls] --", flag, " must name a certificate in PEM format. Got '", path,
        "', which holds none."));
  }
  return certificate;
}

// One that is good now.
absl::StatusOr<Certificate> ReadValidCertificate(const std::string& path,
                                                 absl::string_view flag) {
  absl::StatusOr<Certificate> read = ReadCertificate(path, flag);
  if (!read.ok()) return read.status();
  Certificate certificate = *std::move(read);
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[tls] the certificate ", path, " (--", flag, ") expired at ",
        Text(X509_get0_notAfter(certificate.get())), ". Renew it."));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[tls] the certificate ", path, " (--", flag, ") is not valid before ",
        Text(X509_get0_notBefore(certificate.get())),
        ". Is this machine's clock right?"));
  }
  return certificate;
}

absl::StatusOr<PrivateKey> ReadKey(const std::string& path) {
  absl::StatusOr<File> file = Open(path, "tls_key");
  if (!file.ok()) return file.status();
  struct stat info = {};
  if (fstat(fileno(file->get()), &info) == 0 && (info.st_mode & 0007) != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "[tls] a private key must be private. Got %s with mode %04o; chmod 600 "
        "it, and make a new one if others were here.",
        path, info.st_mode & 07777));
  }
  // No pass phrase is asked for: nobody sits there.
  PrivateKey key(PEM_read_PrivateKey(
                     file->get(), nullptr,
                     [](char*, int, int, void*) { return -1; }, nullptr),
                 EVP_PKEY_free);
  ERR_clear_error();
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[tls] --tls_key must name a private key in PEM format, without a pass "
        "phrase. Got '",
        path, "', which holds none."));
  }
  return key;
}

absl::Status CheckFiles(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty()) {
    return absl::InvalidArgumentError(
        "[tls] --tls_certificate and --tls_key go together. Got only one, or "
        "--tls_client_ca without them.");
  }
  absl::StatusOr<Certificate> certificate =
      ReadValidCertificate(files.certificate, "tls_certificate");
  if (!certificate.ok()) return certificate.status();
  absl::StatusOr<PrivateKey> key = ReadKey(files.key);
  if (!key.ok()) return key.status();
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("[tls] the key must be the certificate's. Got ", files.key,
                     ", which does not fit ", files.certificate, "."));
  }
  if (files.client_ca.empty()) return absl::OkStatus();
  return ReadValidCertificate(files.client_ca, "tls_client_ca").status();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> LoadTls(
    const TlsFiles& files) {
  absl::Status status = CheckFiles(files);
  if (!status.ok()) return status;
  namespace tls = grpc::experimental;
  auto watched = std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.client_ca, kLookAgainSeconds);
  tls::TlsServerCredentialsOptions options(std::move(watched));
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(
        files.require_client_certificate
            ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
            : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return tls::TlsServerCredentials(options);
}

absl::Status CheckTls(const TlsFiles& files) {
  const bool none =
      files.certificate.empty() && files.key.empty() && files.client_ca.empty();
  return none ? absl::OkStatus() : CheckFiles(files);
}

absl::StatusOr<absl::Time> CertificateExpiry(const std::string& path) {
  absl::StatusOr<Certificate> certificate =
      ReadCertificate(path, "tls_certificate");
  if (!certificate.ok()) return certificate.status();
  struct tm time = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate->get()), &time) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("[tls] ", path, " must say until when it is valid."));
  }
  return absl::FromTM(time, absl::UTCTimeZone());
}

}  // namespace holdfast
