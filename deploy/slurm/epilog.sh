#!/bin/sh
# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
#
# Slurm's Epilog (slurm.conf: Epilog=/etc/slurm/holdfast/epilog.sh), run as root on
# each node when the job ends: ends the job's daemon and removes what it left.
set -eu
run=${HOLDFAST_RUN_DIR:-/run/holdfast-jobs}/${SLURM_JOB_ID:?}
[ -d "$run" ] || exit 0

pid=$(cat "$run/pid" 2>/dev/null || true)
# A number alone may by now be another process's.
is_ours() {
  tr '\0' '\n' < "/proc/$pid/cmdline" 2>/dev/null |
    grep -qxF -e "--socket=$run/holdfastd.sock"
}
if [ -n "$pid" ] && is_ours; then
  kill -TERM "$pid"
  for _ in $(seq 150); do
    is_ours || break
    sleep 0.1
  done
  if is_ours; then kill -KILL "$pid"; fi
fi
rm -rf "$run"
