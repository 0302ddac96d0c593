# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Names by which programs say how elements lie, where, and what is compiled: they
are accepted, and change nothing."""

import copy
import pickle

import numpy as np
import pytest


def test_memory_formats(torch):
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    for y in (
        x.to(memory_format=torch.channels_last),
        x.contiguous(memory_format=torch.channels_last),
        x.clone(memory_format=torch.preserve_format),
        torch.nn.Identity().to(memory_format=torch.channels_last)(x),
    ):
        assert np.array_equal(y.numpy(), x.numpy())
    assert x.is_contiguous(memory_format=torch.contiguous_format)
    assert repr(torch.channels_last) == "torch.channels_last"
    assert isinstance(torch.channels_last, torch.memory_format)
    assert x.layout is torch.strided and isinstance(x.layout, torch.layout)
    for name in (torch.channels_last, torch.strided):
        assert copy.deepcopy(name) is pickle.loads(pickle.dumps(name)) is name


def test_the_default_device_is_the_daemons(torch):
    assert torch.get_default_device() == torch.zeros(1).device
    torch.set_default_device(torch.get_default_device())
    torch.set_default_device(None)
    with pytest.raises(RuntimeError, match="mps"):
        torch.set_default_device("mps")


def test_marks_of_the_compiler(torch):
    @torch.compiler.disable
    def f(x):
        return x + 1

    @torch.compiler.disable(recursive=False)
    def g(x):
        return x + 1

    assert f(1) == g(1) == 2 and not torch.compiler.is_compiling()
    torch.set_warn_always(False)


def test_names_for_annotations(torch):
    from holdfast.types import Device, Number

    assert isinstance(torch.device("cpu"), Device) and isinstance(2.0, Number)
    assert torch.ones(3)[torch.newaxis].shape == (1, 3)


def test_base_classes_of_modules(torch):
    modules = torch.nn.modules
    assert isinstance(torch.nn.ConvTranspose1d(1, 1, 1), modules.conv._ConvNd)
    assert isinstance(torch.nn.Dropout2d(), modules.dropout._DropoutNd)
    assert isinstance(torch.nn.BatchNorm1d(2), modules.batchnorm._BatchNorm)
