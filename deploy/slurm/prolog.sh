#!/bin/sh
# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
#
# Slurm's Prolog (slurm.conf: Prolog=/etc/slurm/holdfast/prolog.sh), run as root on
# each node of a job: a daemon for the job alone, as the job's user, on the job's
# GPUs. It outlives the job's steps and ends with the job (epilog.sh).
set -eu
: "${SLURM_JOB_ID:?}" "${SLURM_JOB_UID:?}" "${SLURM_JOB_GID:?}"
run=${HOLDFAST_RUN_DIR:-/run/holdfast-jobs}/$SLURM_JOB_ID

mkdir -p "$(dirname "$run")"
mkdir -m 0700 "$run"
chown "$SLURM_JOB_UID:$SLURM_JOB_GID" "$run"
device=cpu
if [ -n "${SLURM_JOB_GPUS:-}" ]; then
  device=cuda
  export CUDA_VISIBLE_DEVICES="$SLURM_JOB_GPUS"
fi
setsid setpriv --reuid="$SLURM_JOB_UID" --regid="$SLURM_JOB_GID" --clear-groups \
  --no-new-privs "${HOLDFAST_DAEMON:-holdfastd}" --socket="$run/holdfastd.sock" \
  --device="$device" --log_file="$run/log" --log_format=json \
  </dev/null >/dev/null 2>"$run/errors" &
pid=$!
echo "$pid" > "$run/pid"
# A job that starts without its daemon would only fail later.
for _ in $(seq 100); do
  [ -S "$run/holdfastd.sock" ] && exit 0
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.1
done
echo "holdfast: the daemon of job $SLURM_JOB_ID did not start:" >&2
cat "$run/errors" >&2
exit 1
