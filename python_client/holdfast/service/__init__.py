# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How a program comes to its daemon: hosts with names, ssh, a daemon of the user's own.

`import holdfast` imports none of this; connect() does where it is needed.
"""
