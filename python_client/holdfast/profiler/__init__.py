# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a program submitted and what the daemon executed, on one clock.

PyTorch's names: `profile`, `schedule`, `record_function`. The daemon runs
behind the program, so there are two timelines: calls of this process, and
executions on the daemon, tied by the numbers of the commands. Times of ops in
tables are executions.
"""

from holdfast import missing
from holdfast.profiler.profile import profile, tensorboard_trace_handler
from holdfast.profiler.ranges import record_function
from holdfast.profiler.schedule import ProfilerAction, ProfilerActivity, schedule

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]

__getattr__ = missing.module_getattr("torch.profiler")
supported_activities = ProfilerActivity.supported
