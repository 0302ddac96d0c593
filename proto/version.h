// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Versions, said once for both sides. What each protocol version added is in
// VERSIONS.md.
#ifndef HOLDFAST_PROTO_VERSION_H_
#define HOLDFAST_PROTO_VERSION_H_

#include <cstdint>

namespace holdfast {

// The versions this build speaks; client and server use the highest that both
// do.
inline constexpr uint32_t kMinProtocolVersion = 1;
inline constexpr uint32_t kProtocolVersion = 2;
inline constexpr char kServerName[] = "holdfastd 0.1.0";
// HelloReply.features.
inline constexpr char kFeatureShare[] = "share";
inline constexpr char kFeaturePack[] = "pack";
inline constexpr char kFeaturePublish[] = "publish";
inline constexpr char kFeaturePlace[] = "place";
inline constexpr char kFeatureCancel[] = "cancel";
// HelloReply.features and HelloRequest.features.
inline constexpr char kFeatureParts[] = "parts";
inline constexpr char kFeatureOrder[] = "order";

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_VERSION_H_
