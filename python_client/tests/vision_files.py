# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Small image data sets on disk, as their publishers lay them out."""

import gzip
import pickle
import struct

import numpy


def idx(array):
    """The bytes of an idx file."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.tobytes()


def mnist(folder, count=20, part="train", zipped=False, prefix=""):
    """Writes images [count, 28, 28] and their labels; returns both."""
    draw = numpy.random.default_rng(count)
    images = draw.integers(0, 256, (count, 28, 28), numpy.uint8)
    labels = (numpy.arange(count) % 10).astype(numpy.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        path = folder / f"{prefix}{part}-{name}-ubyte{'.gz' if zipped else ''}"
        data = idx(array)
        path.write_bytes(gzip.compress(data) if zipped else data)
    return images, labels


class Python2Pickler:
    """What cPickle of Python 2 wrote for CIFAR: its strings are bytes."""

    def __init__(self):
        self.parts = [b"\x80\x02"]

    def text(self, data):
        self.parts.append(b"T" + struct.pack("<i", len(data)) + data)

    def number(self, value):
        self.parts.append(b"J" + struct.pack("<i", value))

    def array(self, array):
        self.parts.append(b"cnumpy.core.multiarray\n_reconstruct\n")
        self.parts.append(b"cnumpy\nndarray\n")
        self.parts.append(b"K\x00\x85U\x01b\x87R(K\x01")
        for size in array.shape:
            self.number(size)
        self.parts.append(b"\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R")
        self.parts.append(b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb")
        self.parts.append(b"\x89")
        self.text(array.tobytes())
        self.parts.append(b"tb")

    def write(self, value):
        if isinstance(value, numpy.ndarray):
            self.array(value)
        elif isinstance(value, dict):
            self.parts.append(b"}(")
            for pair in value.items():
                for item in pair:
                    self.write(item)
            self.parts.append(b"u")
        elif isinstance(value, list):
            self.parts.append(b"](")
            for item in value:
                self.write(item)
            self.parts.append(b"e")
        elif isinstance(value, int):
            self.number(value)
        else:
            self.text(value.encode("latin1"))

    def dumps(self, value):
        self.write(value)
        return b"".join(self.parts) + b"."


def cifar_batch(count, classes, key, seed):
    draw = numpy.random.default_rng(seed)
    return {
        "data": draw.integers(0, 256, (count, 3072), numpy.uint8),
        key: [(seed + i) % classes for i in range(count)],
        "filenames": [f"thing_{i}.png" for i in range(count)],
    }


def dumped(value, python2):
    return Python2Pickler().dumps(value) if python2 else pickle.dumps(value, protocol=2)
