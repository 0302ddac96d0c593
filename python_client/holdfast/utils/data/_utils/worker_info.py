# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Where code finds out which worker it runs in."""

current = None  # this process's WorkerInfo, if it is a worker


class WorkerInfo:
    """id, num_workers, seed and dataset of the worker that asks."""

    def __init__(self, **values):
        self.__dict__.update(values)
        self._keys = tuple(values)

    def __setattr__(self, name, value):
        if "_keys" in self.__dict__:
            raise RuntimeError(
                f"Cannot assign attributes to {type(self).__name__} objects"
            )
        super().__setattr__(name, value)

    def __repr__(self):
        values = ", ".join(f"{key}={getattr(self, key)}" for key in self._keys)
        return f"{type(self).__name__}({values})"


def get_worker_info():
    """The WorkerInfo of the worker that this code runs in; None in the program."""
    return current
