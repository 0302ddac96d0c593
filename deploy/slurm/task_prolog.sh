#!/bin/sh
# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
#
# Slurm's TaskProlog (slurm.conf: TaskProlog=/etc/slurm/holdfast/task_prolog.sh): what
# it prints becomes the environment of the job's programs, which find the daemon so.
run=${HOLDFAST_RUN_DIR:-/run/holdfast-jobs}/${SLURM_JOB_ID:?}
if [ -S "$run/holdfastd.sock" ]; then
  echo "export HOLDFAST_ADDRESS=unix:$run/holdfastd.sock"
elif [ -r "$run/failed" ]; then
  # Slurm prints this into the job's output.
  echo "print holdfast: no daemon for this job: $(tr '\n' ' ' < "$run/failed")"
fi
