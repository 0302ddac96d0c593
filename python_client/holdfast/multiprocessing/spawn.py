# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""spawn: the same function in several processes, and their errors here."""

import multiprocessing
import multiprocessing.connection
import signal
import sys
import traceback


class ProcessException(Exception):
    """One of the processes failed; the others were ended."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """It ended otherwise: `exit_code`, or `signal_name`."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        arguments = self.msg, self.error_index, self.pid
        return type(self), (*arguments, self.exit_code, self.signal_name)


def _run(fn, index, args, errors):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent's, which has it too
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes that spawn(join=False) started."""

    def __init__(self, processes, error_queues):
        self.processes, self.error_queues = processes, error_queues
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self):
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None):
        """Waits for one more process; True when all have ended well.

        A failure ends the others and is raised here.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join()
        self._raise(failed)

    def _raise(self, index):
        process, errors = self.processes[index], self.error_queues[index]
        if not errors.empty():
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n"
                + errors.get(),
                index,
                process.pid,
            )
        code = process.exitcode
        name = signal.Signals(-code).name if code < 0 else None
        how = f"signal {name}" if name else f"exit code {code}"
        raise ProcessExitedException(
            f"process {index} terminated with {how}", index, process.pid, code, name
        )


# PyTorch's old name.
SpawnContext = ProcessContext


def start_processes(
    fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"
):
    """Runs fn(i, *args) in `nprocs` processes, i from 0 on.

    With join waits for all of them, and raises what one of them raised; else
    returns a ProcessContext.
    """
    context = multiprocessing.get_context(start_method)
    processes, error_queues = [], []
    for index in range(nprocs):
        errors = context.SimpleQueue()
        process = context.Process(
            target=_run, args=(fn, index, args, errors), daemon=daemon
        )
        process.start()
        processes.append(process)
        error_queues.append(errors)
    started = ProcessContext(processes, error_queues)
    if not join:
        return started
    while not started.join():
        pass


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """start_processes() with the method that PyTorch takes for this name."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
