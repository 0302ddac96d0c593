# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Reads the daemon's StatsReply (proto/stats.proto).

The few fields of one message need no protobuf package: this is its wire
format, a list of (field number, type, bytes).
"""

import struct

# field number -> (name, kind); a dict is a repeated message, list repeated integers.
_SEGMENT = {
    1: ("id", int),
    2: ("bytes", int),
    3: ("small", bool),
    4: ("block_bytes", list),
    5: ("block_requested", list),
    6: ("block_states", list),
    7: ("device", int),
}
_DEVICE_MEMORY = {
    1: ("device", int),
    2: ("bytes_in_use", int),
    3: ("bytes_cached", int),
    4: ("peak_bytes_in_use", int),
    5: ("peak_bytes_held", int),
    6: ("allocations", int),
    7: ("segments", int),
}
_SESSION = {
    1: ("id", int),
    2: ("name", str),
    3: ("client", str),
    4: ("transport", str),
    5: ("connected", bool),
    6: ("tensors", int),
    7: ("bytes_in_use", int),
    8: ("bytes_cached", int),
    9: ("ops", int),
    10: ("device_seconds", float),
    11: ("queued_bytes", int),
    12: ("peak_bytes_in_use", int),
    13: ("op_sequence", int),
    14: ("trace_id", str),
    15: ("refused_allocations", int),
    16: ("user", str),
    30: ("peak_bytes_held", int),
    31: ("allocations", int),
    32: ("segments", int),
    33: ("memory", _SEGMENT),
    34: ("devices", _DEVICE_MEMORY),
}
_DEVICE = {
    1: ("name", str),
    2: ("index", int),
    3: ("major", int),
    4: ("minor", int),
    5: ("multi_processors", int),
    6: ("total_bytes", int),
    7: ("free_bytes", int),
}
_OP = {
    1: ("name", str),
    2: ("calls", int),
    3: ("failures", int),
    4: ("seconds", float),
}
_REPLY = {
    1: ("server", str),
    2: ("device", str),
    3: ("uptime_seconds", float),
    4: ("memory_limit_bytes", int),
    5: ("sessions", _SESSION),
    6: ("ops", _OP),
    20: ("published_names", int),
    21: ("published_bytes", int),
    22: ("state_bytes", int),
    23: ("state_bytes_loaded", int),
    30: ("device_properties", _DEVICE),
    31: ("replayed_launches", int),
    32: ("fused_launches", int),
}


def _varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data):
    """Yields (number, value): ints, 8 raw bytes, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 1:
            value, at = data[at : at + 8], at + 8
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        elif wire == 5:
            value, at = data[at : at + 4], at + 4
        else:
            raise ValueError(f"unknown wire type {wire}")
        yield key >> 3, value


def _integers(data):
    at, values = 0, []
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values


def _message(data, fields):
    message = {
        name: [] if isinstance(kind, dict) else kind() for name, kind in fields.values()
    }
    for number, value in _fields(data):
        if number not in fields:
            continue
        name, kind = fields[number]
        if isinstance(kind, dict):
            message[name].append(_message(value, kind))
        elif kind is float:
            message[name] = struct.unpack("<d", value)[0]
        elif kind is list:
            message[name] += _integers(value)
        elif kind is str:
            message[name] = value.decode("utf-8", "replace")
        else:
            message[name] = kind(value)
    return message


def parse(data):
    """The reply as dicts and lists, named as in the .proto file."""
    return _message(data, _REPLY)
