#!/bin/sh
# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
#
# Slurm's Prolog (slurm.conf: Prolog=/etc/slurm/holdfast/prolog.sh), run as root on
# each node of a job: a daemon for the job alone, as the job's user, on the job's
# GPUs. It outlives the job's steps and ends with the job (epilog.sh).
#
# It always succeeds: Slurm drains a node whose prolog fails, for every job, whether
# that uses Holdfast or not. What went wrong is told to the job (task_prolog.sh) and
# to the node's log.
#
# HOLDFAST_JOB_FLAGS: more flags, such as --memory_limit=64GiB (the daemon is outside
# of the job's control group) or --listen=:0 --allow_remote with what that asks for.
set -u
: "${SLURM_JOB_ID:?}" "${SLURM_JOB_UID:?}" "${SLURM_JOB_GID:?}"
run=${HOLDFAST_RUN_DIR:-/run/holdfast-jobs}/$SLURM_JOB_ID

give_up() {
  echo "holdfast: the daemon of job $SLURM_JOB_ID did not start: $1" >&2
  if command -v logger >/dev/null; then
    logger -t holdfast "the daemon of job $SLURM_JOB_ID did not start: $1"
  fi
  if [ -d "$run" ]; then echo "$1" > "$run/failed"; fi
  exit 0
}

mkdir -p "$(dirname "$run")" || give_up "no folder $(dirname "$run")"
if ! mkdir -m 0700 "$run" 2>/dev/null; then
  # A job that was requeued finds what its former run left.
  [ -S "$run/holdfastd.sock" ] && exit 0
  rm -f "$run/failed"
fi
chown "$SLURM_JOB_UID:$SLURM_JOB_GID" "$run" || give_up "chown $run"
device=cpu
if [ -n "${SLURM_JOB_GPUS:-}" ]; then
  device=cuda:all
  export CUDA_VISIBLE_DEVICES="$SLURM_JOB_GPUS"
fi
# Flags are words without spaces.
# shellcheck disable=SC2086
setsid setpriv --reuid="$SLURM_JOB_UID" --regid="$SLURM_JOB_GID" --clear-groups \
  --no-new-privs "${HOLDFAST_DAEMON:-holdfastd}" --socket="$run/holdfastd.sock" \
  --device="$device" --log_file="$run/log" --log_format=json \
  ${HOLDFAST_JOB_FLAGS:-} \
  </dev/null >/dev/null 2>"$run/errors" &
pid=$!
echo "$pid" > "$run/pid"
for _ in $(seq 100); do
  [ -S "$run/holdfastd.sock" ] && exit 0
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.1
done
kill -KILL "$pid" 2>/dev/null
give_up "$(cat "$run/errors")"
