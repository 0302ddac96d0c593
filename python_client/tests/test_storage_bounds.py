# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""No view shows more than its storage: what lies behind it is other tensors'."""

import pytest

BEYOND = [
    ((100,), (1,), 0),
    ((5,), (1,), 0),
    ((1,), (1,), 4),
    ((2, 2), (3, 1), 0),
    ((2,), (1,), 3),
]


@pytest.mark.parametrize("size, stride, offset", BEYOND)
def test_as_strided_is_refused_at_the_call(torch, size, stride, offset):
    secret = torch.full((512,), 7.0)
    del secret
    x = torch.arange(4.0)
    for base in (x, x[2:], x.detach(), x.data, x.view(2, 2).t(), x * 1):
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 16"):
            torch.as_strided(base, size, stride, offset)
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.zeros(1).set_(x, offset, size, stride)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.clone().as_strided_(size, stride, offset)
    assert x.tolist() == [0, 1, 2, 3]


def test_all_of_the_storage_may_be_seen(torch):
    x = torch.arange(6.0)
    part = x[4:]
    assert part.as_strided((6,), (1,), 0).tolist() == x.tolist()
    assert part.as_strided((2, 3), (0, 2), 1).tolist() == [[1, 3, 5]] * 2
    assert x.as_strided((0,), (1,), 6).tolist() == []
    y = torch.zeros(1).set_(x, 1, (2, 2))
    assert y.tolist() == [[1, 2], [3, 4]]
    y[0, 0] = 9
    assert x[1].item() == 9
    found = torch.arange(8)[torch.arange(8) > 4]
    assert found.as_strided((3,), (1,)).tolist() == [5, 6, 7]
    with pytest.raises(RuntimeError, match="out of bounds"):
        found.as_strided((4,), (1,))


def test_the_daemon_checks_what_the_client_cannot(torch):
    """The client does not know how large memory is that it finds there."""
    torch.publish("bounds", torch.arange(4.0))
    found = torch.lookup("bounds")
    assert found.as_strided((2,), (2,)).tolist() == [0, 2]
    for size in (5, 100):
        wide = found.as_strided((size,), (1,))
        with pytest.raises(RuntimeError, match="must stay inside its storage"):
            wide.tolist()
    torch.unpublish("bounds")
