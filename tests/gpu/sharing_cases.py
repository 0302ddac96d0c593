# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of the GPU that Holdfast and this machine's PyTorch (and CuPy, where it is)
see both: DLPack and __cuda_array_interface__, both ways. Part of `run`."""

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64"
).split()


def cases():
    """(name, function of (holdfast, torch) that asserts)."""
    for function in (
        _same_memory,
        _writes_are_seen,
        _views,
        _types_out,
        _types_in,
        _cuda_array_interface,
        _a_copy_comes_in,
        _another_stream,
        _strides_come_in,
        _bare_capsules,
        _there_and_back,
        _an_array_keeps_its_tensor,
        _large,
        _checked_indices,
        _cupy,
    ):
        yield "sharing" + function.__name__.replace("_", " "), function


def _no_host(ours):
    """Inside, nothing may go by way of the host."""
    import contextlib

    from holdfast import device_arrays

    @contextlib.contextmanager
    def guard():
        kept = device_arrays._through_host

        def refuse(*_):
            raise AssertionError("the elements went through the host")

        device_arrays._through_host = refuse
        try:
            yield
        finally:
            device_arrays._through_host = kept

    return guard()


def _same_memory(ours, theirs):
    x = ours.arange(24.0, device="cuda").reshape(4, 6)
    y = theirs.from_dlpack(x)
    assert y.is_cuda and y.tolist() == x.tolist()
    assert y.data_ptr() == theirs.from_dlpack(x).data_ptr()
    assert theirs.from_dlpack(x[1]).data_ptr() == y.data_ptr() + 6 * 4
    assert x.__dlpack_device__() == y.__dlpack_device__()


def _writes_are_seen(ours, theirs):
    x = ours.zeros(1000, device="cuda")
    y = theirs.from_dlpack(x)
    y.fill_(7)
    theirs.cuda.synchronize()
    assert x.eq(7).all().item() and x.sum().item() == 7000
    x.add_(1)
    ours.cuda.synchronize()
    assert bool((y == 8).all())
    y[3] = -1
    theirs.cuda.synchronize()
    assert x[3].item() == -1


def _views(ours, theirs):
    x = ours.arange(60.0, device="cuda").reshape(3, 4, 5)
    for t in (x.permute(2, 0, 1), x[1:, ::2], x[0, 0, 1], x[:0], x[0].expand(2, 4, 5)):
        y = theirs.from_dlpack(t)
        assert tuple(y.shape) == tuple(t.shape)
        assert y.numel() == 0 or y.stride() == t.stride()
        assert y.tolist() == t.tolist()


def _types_out(ours, theirs):
    for name in DTYPES:
        x = (ours.arange(10, device="cuda") % 3).to(getattr(ours, name))
        y = theirs.from_dlpack(x)
        assert y.dtype is getattr(theirs, name), name
        assert y.tolist() == x.tolist(), name


def _types_in(ours, theirs):
    with _no_host(ours):
        for name in DTYPES:
            y = (theirs.arange(10, device="cuda") % 3).to(getattr(theirs, name))
            x = ours.from_dlpack(y)
            assert x.dtype is getattr(ours, name), name
            assert x.is_cuda and x.tolist() == y.tolist(), name


def _cuda_array_interface(ours, theirs):
    x = ours.arange(12.0, device="cuda").reshape(3, 4).t()
    y = theirs.as_tensor(x, device="cuda")
    assert y.data_ptr() == x.__cuda_array_interface__["data"][0]
    assert y.tolist() == x.tolist()

    class Interface:
        __cuda_array_interface__ = y.contiguous().__cuda_array_interface__

    assert ours.from_dlpack(Interface()).tolist() == y.tolist()


def _a_copy_comes_in(ours, theirs):
    y = theirs.arange(1000.0, device="cuda")
    with _no_host(ours):
        x = ours.from_dlpack(y)
    y.zero_()
    theirs.cuda.synchronize()
    assert x.sum().item() == 499500
    x.zero_()
    assert (y == 0).all()


def _another_stream(ours, theirs):
    """What the producer's stream has yet to write is there."""
    stream = theirs.cuda.Stream()
    a = theirs.randn(2048, 2048, device="cuda")
    theirs.cuda.synchronize()
    with theirs.cuda.stream(stream):
        y = a
        for _ in range(20):
            y = (y @ a).clamp(-1, 1)
        x = ours.from_dlpack(y)
    theirs.cuda.synchronize()
    assert theirs.equal(theirs.from_dlpack(x), y)


def _strides_come_in(ours, theirs):
    y = theirs.arange(60.0, device="cuda").reshape(3, 4, 5)
    with _no_host(ours):
        for t in (y.permute(2, 0, 1), y[1:, ::2], y[2, 3, 4], y[0].expand(2, 4, 5)):
            assert ours.from_dlpack(t).tolist() == t.tolist()


def _bare_capsules(ours, theirs):
    x = ours.arange(6.0, device="cuda")
    y = theirs.utils.dlpack.from_dlpack(ours.utils.dlpack.to_dlpack(x))
    assert y.tolist() == x.tolist()
    again = ours.utils.dlpack.from_dlpack(theirs.utils.dlpack.to_dlpack(y))
    assert again.tolist() == x.tolist()


def _there_and_back(ours, theirs):
    x = ours.arange(6.0, device="cuda")
    with _no_host(ours):
        again = ours.from_dlpack(theirs.from_dlpack(x)[2:])
    assert again.tolist() == [2, 3, 4, 5]
    again.zero_()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def _an_array_keeps_its_tensor(ours, theirs):
    x = ours.full((100_000,), 5.0, device="cuda")
    y = theirs.from_dlpack(x)
    del x
    for _ in range(20):
        ours.zeros(100_000, device="cuda")
    ours.cuda.empty_cache()
    ours.cuda.synchronize()
    assert bool((y == 5).all())


def _large(ours, theirs):
    x = ours.ones(300 << 20, device="cuda", dtype=ours.uint8)
    y = theirs.from_dlpack(x)
    assert int(y.sum(dtype=theirs.int64)) == 300 << 20
    del x, y
    z = theirs.ones(300 << 20, device="cuda", dtype=theirs.uint8)
    with _no_host(ours):
        assert ours.from_dlpack(z).sum(dtype=ours.int64).item() == 300 << 20


def _checked_indices(ours, theirs):
    """Another library may write an index after it was checked: never outside."""
    table = ours.arange(10.0, device="cuda")
    index = ours.tensor([1, 2], device="cuda")
    assert table[index].tolist() == [1, 2]
    theirs.from_dlpack(index)[1] = 1 << 40
    theirs.cuda.synchronize()
    try:
        table[index].tolist()
    except IndexError:
        pass
    else:
        raise AssertionError("an index outside was taken")
    assert table.sum().item() == 45


def _cupy(ours, theirs):
    try:
        import cupy
    except ImportError:
        return
    x = ours.arange(6.0, device="cuda").reshape(2, 3)
    for y in (cupy.from_dlpack(x), cupy.asarray(x)):
        assert y.data.ptr == x.__cuda_array_interface__["data"][0]
        y[0, 0] = 9
        cupy.cuda.Device().synchronize()
        assert x[0, 0].item() == 9
    assert ours.from_dlpack(cupy.arange(5.0)[::-1]).tolist() == [4, 3, 2, 1, 0]
