# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensor.untyped_storage() and storage(): what programs ask of a tensor's memory."""

import numpy as np
import pytest


def test_a_view_has_its_tensors_memory(torch):
    x = torch.arange(6, dtype=torch.int16).reshape(2, 3)
    whole, part = x.untyped_storage(), x[1:, ::2].untyped_storage()
    assert whole.nbytes() == part.nbytes() == len(whole) == whole.size() == 12
    assert whole == part and hash(whole) == hash(part)
    assert whole != x.clone().untyped_storage()
    assert whole.tolist() == list(x.numpy().tobytes()) == list(part)
    assert whole[2] == 1 and whole[2:4].tolist() == [1, 0]
    assert whole.device == x.device and whole.element_size() == 1
    assert repr(whole).endswith("UntypedStorage(device=cpu) of size 12]")


def test_addresses(torch):
    x = torch.ones(4)
    storage = x.untyped_storage()
    if torch.current_session().transport == "shm":
        assert storage.data_ptr() == x.data_ptr() != 0
        assert x[2:].untyped_storage().data_ptr() == x[2:].data_ptr() - 8
    else:
        assert storage.data_ptr() == 0
    assert x[1:].storage().data_ptr() == storage.data_ptr()


def test_typed_storage(torch):
    x = torch.arange(6.0).reshape(2, 3)
    storage = x[1].storage()
    assert storage.size() == len(storage) == 6 and storage.nbytes() == 24
    assert storage.tolist() == list(storage) == [0, 1, 2, 3, 4, 5]
    assert storage[4] == 4.0 and storage[:2] == [0.0, 1.0]
    assert storage.dtype is torch.float32 and storage.untyped() == x.untyped_storage()
    storage[0] = 9
    assert x[0, 0].item() == 9


def test_memory_of_its_own(torch):
    storage = torch.UntypedStorage(8)
    storage.fill_(1)
    assert storage.tolist() == [1] * 8
    copy = storage.clone()
    copy[0] = 7
    assert (copy[0], storage[0]) == (7, 1)
    assert storage.copy_(copy)[0] == 7
    x = torch.zeros(2, dtype=torch.int32)
    x.set_(storage, 0, (2,), (1,))
    assert x.tolist() == np.frombuffer(bytes([7] + [1] * 7), np.int32).tolist()
    assert isinstance(storage, torch.UntypedStorage) and storage.to(device="cpu") == (
        storage
    )


def test_what_memory_cannot(torch):
    storage = torch.ones(2).untyped_storage()
    assert storage.resize_(8) is storage
    with pytest.raises(NotImplementedError, match="keeps its size of 8 bytes. Got 0"):
        storage.resize_(0)
    with pytest.raises(NotImplementedError, match="UntypedStorage.byteswap"):
        storage.byteswap
    assert not hasattr(storage, "byteswap")
