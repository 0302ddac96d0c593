# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The suite that needs PyTorch from PyPI: skipped by name where there is none."""

import re

import pytest
import suites
import torch_environment


@pytest.fixture
def no_environment(tmp_path, monkeypatch):
    """As on a machine where nothing was set up and no package index answers."""
    monkeypatch.setattr(torch_environment, "INSTALLED", tmp_path / "none.txt")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def test_without_an_index_the_suite_is_skipped_by_name(no_environment, capfd):
    counts = suites.torch_suite(None, None)
    assert counts.line() == "0 passed, 0 failed, 1 skipped"
    said = capfd.readouterr().err
    assert "SKIPPED torch_client/tests: PyPI cannot be reached" in said


def test_who_asks_for_the_environment_is_told(no_environment):
    with pytest.raises(torch_environment.Unreachable, match="./dev setup --torch"):
        torch_environment.setup()


def test_a_sanitizer_skips_the_suite():
    assert suites.torch_suite("tsan", None).line() == "0 passed, 0 failed, 1 skipped"


def test_every_package_has_its_version():
    lines = torch_environment.PACKAGES.read_text().splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    assert len(packages) > 20
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", package) for package in packages)
    assert not any(package.startswith("triton") for package in packages)
