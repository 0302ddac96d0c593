# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Each limit of the protocol has a call that goes past it, and ends no session.

A row is such a call, here or in test_limits_of_calls.py, or says why no call of the
Python API gets there. A new constant needs a row.
"""

import pathlib
import re
import sys

import pytest

import test_limits_of_calls as calls

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["server", "proto", "client", "ops", "python_client/src"]
LIMIT = re.compile(r"constexpr [\w:]+ (kMax\w+)\s*=")
LONG = "x" * (3 << 20)


def names_of_a_publication(torch):
    with pytest.raises(RuntimeError, match="1 to 256 bytes"):
        torch.publish(LONG, torch.ones(1))
    for look in (torch.lookup, torch.unpublish):
        with pytest.raises(LookupError):
            look(LONG)


def readers_of_a_publication(torch):
    with pytest.raises(RuntimeError, match="at most 1024 readers"):
        torch.publish("p", torch.ones(1), readers=[f"u{i}" for i in range(200_000)])


def name_of_a_session(torch):
    for name in ("n" * 300, LONG):
        with pytest.raises(RuntimeError, match="at most .* bytes"):
            torch.connect(torch.current_session().address, session=name)


def nested_backwards(torch):
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            if ctx.depth:
                with torch.enable_grad():
                    z = torch.ones(1, requires_grad=True)
                    Nested.apply(z, ctx.depth - 1).backward()
            return grad * 2, None

    x = torch.ones(1, requires_grad=True)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        with pytest.raises(RuntimeError, match="at most 256 backwards"):
            Nested.apply(x, 300).backward()
    finally:
        sys.setrecursionlimit(limit)


def place_of_a_cancelled_line(torch):
    scope = {}
    exec(compile("def work(a): return a + 1", "y" * 5000 + ".py", "exec"), scope)
    scope["work"](torch.ones(1))
    torch.cancel()


def dimensions(torch):
    calls_refused(torch, calls.refuse_dimensions)
    with pytest.raises((RuntimeError, IndexError), match="dimensions"):
        torch.ones(2)[(None,) * 5000]


def list_of_ints(torch):
    calls_refused(torch, calls.refuse_list)
    with pytest.raises(ValueError, match="Got 3000000"):
        torch.ones(2).reshape([1] * 3_000_000)


def bytes_of_a_tensor(torch):
    calls_refused(torch, calls.refuse_sizes)
    with pytest.raises(RuntimeError, match="bytes"):
        torch.ones(1).repeat(2**40, 2**40)


def bytes_of_a_view(torch):
    with pytest.raises(RuntimeError, match="at most"):
        torch.ones(1).expand(2**62)


def device_number(torch):
    for device in ("cuda:64", "cuda:" + "9" * 1000):
        with pytest.raises(RuntimeError):
            torch.ones(1, device=device)


def profiled_names(torch):
    with torch.profiler.profile() as profile:
        with torch.profiler.record_function(LONG):
            torch.ones([1] * 30) + 1
    assert profile.events()


def message_of_a_hook(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2

    def hook(grad):
        raise ValueError(LONG)

    y.register_hook(hook)
    with pytest.raises(ValueError):
        y.backward()


def calls_refused(torch, call):
    with pytest.raises((RuntimeError, ValueError, IndexError, TypeError)):
        call(torch)


def refused(name):
    return lambda torch: calls_refused(torch, getattr(calls, name))


def carried(name):
    return getattr(calls, name)


INSIDE = "of one side's own memory or queue: what is more waits, or is kept elsewhere"
SLOW_WAY = "what is more is decoded in another way: test_limits_of_calls.py"
FILES = "of files that the daemon reads; nothing in them comes from a call"
PEER = "of what the other side sends: the daemon sends it in parts"

ROWS = {
    "proto/limits.h": {
        "kMaxTensorsOfCall": refused("refuse_stack"),
        "kMaxCommandBytes": refused("refuse_inputs"),
        "kMaxCallBytes": refused("refuse_function"),
        "kMaxFunctionNameBytes": carried("long_names"),
        "kMaxHooks": refused("refuse_hook"),
        "kMaxKept": refused("refuse_kept_list"),
        "kMaxKeptNameBytes": refused("refuse_kept_name"),
        "kMaxKeptListBytes": refused("refuse_kept_list"),
    },
    "proto/shm_ring.cc": {"kMaxCapacity": INSIDE},
    "ops/op_schema.h": {"kMaxListLength": list_of_ints},
    "ops/tensor_spec.h": {
        "kMaxRank": dimensions,
        "kMaxTensorBytes": bytes_of_a_tensor,
        "kMaxViewBytes": bytes_of_a_view,
        "kMaxDevices": device_number,
    },
    "ops/window.h": {"kMaxWindowField": "tests/test_op_cases.py: an op's own check"},
    "ops/infer_linalg.cc": {
        "kMaxSide": "an op's own check, at the call",
        "kMaxLength": "an op's own check, at the call",
    },
    "python_client/src/argument.cc": {"kMaxListLength": list_of_ints},
    "python_client/src/array_mirror.h": {"kMaxMirrorBytes": INSIDE},
    "python_client/src/buffer_type.cc": {"kMaxChain": INSIDE},
    "python_client/src/dlpack_binding.cc": {"kMaxRank": dimensions},
    "python_client/src/op_function.cc": {"kMaxParams": "of the op table's rows"},
    "client/session_core.cc": {"kMaxPendingReleases": carried("long_list_of_releases")},
    "client/batch_writer.cc": {"kMaxVarint": "the bytes of a number"},
    "client/connection.cc": {"kMaxVersion": "a version of the protocol"},
    "client/session_profile.cc": {
        "kMaxSubmissions": INSIDE,
        "kMaxIds": INSIDE,
    },
    "client/session_known.cc": {"kMaxVectorBytes": INSIDE},
    "client/grpc_connection.cc": {
        "kMaxSealedBytes": INSIDE,
        "kMaxSealedBatches": INSIDE,
        "kMaxCommandBytes": carried("cat_gradient"),
    },
    "client/local_socket.cc": {"kMaxFrame": PEER, "kMaxFds": PEER},
    "server/exec/executor_names.cc": {
        "kMaxListed": "a longer list comes in pages",
        "kMaxReaders": readers_of_a_publication,
    },
    "server/exec/published_tensors.h": {
        "kMaxNames": "the user's, refused with the reason (published_tensors_test.cc)",
        "kMaxNameBytes": names_of_a_publication,
    },
    "server/exec/profile_buffer.cc": {"kMaxSizes": profiled_names},
    "server/exec/profile_buffer.h": {"kMaxBytes": "later records are dropped, counted"},
    "server/exec/executor.cc": {"kMaxHandle": "the client counts from one"},
    "server/exec/executor_backward.cc": {"kMaxNested": nested_backwards},
    "server/http/http_server.cc": {"kMaxBodyBytes": "of requests of other programs"},
    "server/session/session_registry.cc": {"kMaxWhereBytes": place_of_a_cancelled_line},
    "server/session/session_registry.h": {"kMaxNameBytes": name_of_a_session},
    "server/session/child_sessions.cc": {
        "kMaxChildren": "more workers' sessions count as sessions of their own"
    },
    "server/session/session_bulk.cc": {
        "kMaxBulkBytes": "16 GiB that wait; refused with the reason"
    },
    "server/session/session.cc": {"kMaxPendingEventBytes": INSIDE},
    "server/session/admin.cc": {"kMaxReasonBytes": "a longer reason is cut"},
    "server/transport/grpc_server.cc": {
        "kMaxMessageBytes": carried("cat_gradient"),
        "kMaxRequestBytes": name_of_a_session,
    },
    "server/log/log.cc": {"kMaxUsers": "past it, the shares of all users begin anew"},
    "server/transport/grpc_listener.cc": {
        "kMaxStrangers": "of connections that have not authenticated yet"
    },
    "server/transport/grpc_listener.h": {
        "kMaxConnections": "of all users together: tests/faults/test_user_shares.py"
    },
    "server/transport/grpc_stream.h": {
        "kMaxBatches": INSIDE,
        "kMaxBatchBytes": carried("stack"),
        "kMaxEvents": INSIDE,
        "kMaxEventBytes": message_of_a_hook,
        "kMaxMessageBytes": carried("cat_gradient"),
    },
    "server/transport/framing.h": {"kMaxFrameBytes": name_of_a_session},
    "server/transport/local_peer.cc": {
        "kMaxReplies": INSIDE,
        "kMaxReplyBytes": INSIDE,
        "kMaxFds": PEER,
    },
    "server/transport/batch_decoder.h": {
        "kMaxCommands": carried("long_list_of_releases"),
        "kMaxParts": carried("keep_many"),
    },
    "server/transport/batch_decoder.cc": {
        "kMaxBytes": SLOW_WAY,
        "kMaxFastCommands": SLOW_WAY,
        "kMaxOtherBytes": SLOW_WAY,
        "kMaxHandles": SLOW_WAY,
        "kMaxAttrs": "of the op table's rows",
    },
    "server/state/state_file.cc": {"kMaxHeader": FILES},
    "server/trust/token_file.cc": {"kMaxFileBytes": FILES, "kMaxUserBytes": FILES},
    "server/trust/guess_back_off.h": {"kMaxOrigins": INSIDE},
    "server/trust/local_users.cc": {"kMaxNames": INSIDE},
}


def limits_in_the_sources():
    found = set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.name
            if path.suffix not in (".h", ".cc") or re.search(r"_test\.(h|cc)$", name):
                continue
            for limit in LIMIT.findall(path.read_text()):
                found.add((str(path.relative_to(ROOT)), limit))
    return found


def test_every_limit_has_a_row():
    rows = {(path, name) for path, own in ROWS.items() for name in own}
    found = limits_in_the_sources()
    assert found - rows == set(), "say which call goes past these, or why none does"
    assert rows - found == set(), "these limits are no more"


# Those of test_limits_of_calls.py run there.
CALLS = {
    row.__name__: row
    for own in ROWS.values()
    for row in own.values()
    if callable(row) and row.__module__ == __name__ and row.__name__ != "<lambda>"
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_past_a_limit_ends_no_session(torch, call):
    before = torch.arange(3.0)
    torch.synchronize()
    call(torch)
    assert before.tolist() == [0, 1, 2]
