# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.cuda, where there is no GPU."""

import pytest


def test_cuda_is_asked_for_in_vain(torch):
    assert torch.cuda.is_available() is False and torch.cuda.device_count() == 0
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.nn.Linear(2, 2).to(device).weight.device == device
    torch.cuda.manual_seed_all(1)
    with pytest.raises(NotImplementedError, match="torch.cuda.Stream"):
        torch.cuda.Stream
