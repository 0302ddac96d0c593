# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What torch.__version__ is under `holdfast run`."""

from holdfast.torch_version import TorchVersion


def test_versions_compare_as_numbers():
    version = TorchVersion("1.13.1+holdfast.0.1.0")
    for older in ("1.5", "1.5.0", "1.13", "1.13.1", "1.13.1rc2", "0.4.1.post2", (1, 9)):
        assert version > older and version >= older and version != older
        assert not version < older and not version <= older
    for newer in ("1.13.2", "2", "2.0.0a0", "10.0", (1, 14)):
        assert version < newer and version <= newer and version != newer
    assert version == "1.13.1+holdfast.0.1.0" and version.startswith("1.13")
    assert TorchVersion("1.13") == "1.13.0" and TorchVersion("2.0a0") < "2.0rc1"
    assert TorchVersion("2.0rc1") < "2.0" and TorchVersion("2.0.dev20230101") < "2.0a0"
    assert version != "main" and version < "main"  # as text
    assert {version: 1}["1.13.1+holdfast.0.1.0"] == 1
    assert version.split(".")[:2] == ["1", "13"]
