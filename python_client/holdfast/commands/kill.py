# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Ends a session: its tensors go, and its program is told who did it and why. Admins
end anybody's, others their own (holdfast end asks first)."""

from holdfast.commands._daemon import add_address, address_of, ask_admin, fail

HELP = "end a session (admin)"


def add_arguments(parser):
    parser.add_argument("id", type=int, help="the session's number (holdfast sessions)")
    add_address(parser)
    parser.add_argument("--reason", default="", help="what its user is told")


def main(args):
    from holdfast.errors import HoldfastError

    if args.id < 0:
        return fail(f"a session's number is not negative. Got {args.id}.")
    try:
        ask_admin(address_of(args), "kill_session", id=args.id, reason=args.reason)
    except HoldfastError as error:
        return fail(str(error))
    print(f"session {args.id} has ended")
    return 0
