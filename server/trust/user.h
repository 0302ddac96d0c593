// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// User: who a session belongs to; Peer: how the daemon knows that.
#ifndef HOLDFAST_SERVER_TRUST_USER_H_
#define HOLDFAST_SERVER_TRUST_USER_H_

#include <string>

namespace holdfast {

enum class Role { kUser, kAdmin };

inline const char* RoleName(Role role) {
  return role == Role::kAdmin ? "admin" : "user";
}

struct User {
  std::string name;
  Role role = Role::kUser;  // of the credential that was shown

  bool admin() const { return role == Role::kAdmin; }
};

// The other end of a connection, authenticated.
struct Peer {
  User user;
  // What it showed, for people and for revocation: "uid 1000", "token 3f2a",
  // "certificate", "none". Holds no secret.
  std::string credential = "none";
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRUST_USER_H_
