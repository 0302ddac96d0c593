# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Arrays that single samples are read from on this machine, and programs see as
tensors of the daemon."""

import holdfast


class HostedTensor:
    """A tensor whose values are also at hand in this process.

    Samples are taken one by one, often in worker processes: each would cost a
    question to the daemon. So they come from an array here, and the tensor is made
    of it when the program first asks for it. What is written to that tensor is
    fetched when the next sample is read. Not for several threads that write.
    """

    def __init__(self, value):
        self._array = self._tensor = self._version = None
        self.set(value)

    def set(self, value):
        """Takes a tensor, or an array, or anything with rows, as it is."""
        self._tensor = None
        if isinstance(value, holdfast.Tensor):
            self._tensor = value
            self._fetch()
        else:
            self._array = value

    @property
    def array(self):
        """The values: NumPy's array, or what the program set in its place."""
        if self._tensor is not None and self._tensor._version != self._version:
            self._fetch()
        return self._array

    @property
    def tensor(self):
        """The tensor; what is no array comes back as it was set."""
        if self._tensor is None and hasattr(self._array, "dtype"):
            # A copy: small arrays are otherwise shared and would lose the version.
            self._tensor = holdfast.tensor(self._array)
            self._version = self._tensor._version
        return self._array if self._tensor is None else self._tensor

    def _fetch(self):
        self._version = self._tensor._version
        self._array = self._tensor.detach().cpu().numpy().copy()

    def __reduce__(self):
        return type(self), (self.array,)


def hosted_attribute(name, doc):
    """A property for an attribute that a HostedTensor holds."""
    place = f"_hosted_{name}"

    def get(self):
        try:
            return vars(self)[place].tensor
        except KeyError:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}'"
            ) from None

    def put(self, value):
        vars(self)[place] = HostedTensor(value)

    return property(get, put, doc=doc)
