// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// RoomForOthers: how what all users share is kept from being used up by one.
#ifndef HOLDFAST_SERVER_LIMITS_ROOM_FOR_OTHERS_H_
#define HOLDFAST_SERVER_LIMITS_ROOM_FOR_OTHERS_H_

#include <cstdint>

namespace holdfast {

// Whether a user who has `own` of the `all` that are taken may have one more,
// where there are `most`. Who has a quarter leaves the last tenth to the
// others.
inline bool RoomForOthers(uint64_t own, uint64_t all, uint64_t most) {
  return all < most && (own < most / 4 || all < most - most / 10);
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LIMITS_ROOM_FOR_OTHERS_H_
