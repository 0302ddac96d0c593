# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""CIFAR's pickles, good and hostile."""

import copy
import hashlib
import os
import pickle
import tarfile
import tracemalloc

import numpy
import pytest
from vision_files import cifar_batch, dumped

from holdfast.utils import data
from holdfast.vision import datasets

pytest.importorskip("PIL")
NAMES = [f"kind {i}" for i in range(10)]


def write(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return hashlib.md5(content).hexdigest()


def small_cifar10(root, python2=True, batches=None):
    """CIFAR-10 with two small batches, and the class that knows their sums."""
    folder = root / "cifar-10-batches-py"
    if batches is None:
        batches = [cifar_batch(6, 10, "labels", seed) for seed in (1, 2)]
    sums = [
        [f"data_batch_{i}", write(folder, f"data_batch_{i}", dumped(batch, python2))]
        for i, batch in enumerate(batches, 1)
    ]
    md5 = write(folder, "batches.meta", dumped({"label_names": NAMES}, python2))

    class Small(datasets.CIFAR10):
        train_list = sums
        test_list = sums[:1]
        meta = {"filename": "batches.meta", "key": "label_names", "md5": md5}

    return Small, batches


@pytest.mark.parametrize("python2", [True, False], ids=["python2", "python3"])
def test_batches_are_read(tmp_path, python2):
    kind, batches = small_cifar10(tmp_path, python2)
    made = kind(str(tmp_path), download=True)
    assert (made.data.shape, made.data.dtype) == ((12, 32, 32, 3), numpy.uint8)
    assert made.targets == batches[0]["labels"] + batches[1]["labels"]
    assert made.classes == NAMES and made.class_to_idx["kind 3"] == 3
    image, target = made[7]
    wanted = batches[1]["data"][1].reshape(3, 32, 32).transpose(1, 2, 0)
    assert (image.mode, image.size, target) == ("RGB", (32, 32), made.targets[7])
    assert numpy.array_equal(numpy.asarray(image), wanted)
    assert len(kind(tmp_path, train=False)) == 6
    assert "Split: Train" in repr(made)


def test_cifar100(tmp_path):
    folder = tmp_path / "cifar-100-python"
    batch = cifar_batch(5, 100, "fine_labels", 40)
    batch["coarse_labels"] = [1] * 5
    names = [f"kind {i}" for i in range(100)]
    train = write(folder, "train", dumped(batch, True))
    meta = write(folder, "meta", dumped({"fine_label_names": names}, True))

    class Small(datasets.CIFAR100):
        train_list = [["train", train]]
        meta = {"filename": "meta", "key": "fine_label_names", "md5": None}

    Small.meta["md5"] = meta
    made = Small(tmp_path)
    assert made.targets == [40, 41, 42, 43, 44] and made.classes == names


def test_workers_and_copies(torch, tmp_path):
    kind, _ = small_cifar10(tmp_path)
    made = kind(tmp_path, transform=numpy.asarray)
    part, _ = data.random_split(made, [8, 4])
    loader = data.DataLoader(part, batch_size=4, num_workers=2)
    batches = list(loader)
    wanted = made.data[list(part.indices)]
    assert numpy.array_equal(torch.cat([x for x, _ in batches]).numpy(), wanted)
    assert torch.cat([y for _, y in batches]).tolist() == [
        made.targets[i] for i in part.indices
    ]
    other = copy.deepcopy(made)
    other.data[:] = 0
    assert made.data.any()


def test_missing_and_changed_files(tmp_path):
    with pytest.raises(
        RuntimeError, match="data_batch_5, batches.meta not in"
    ) as caught:
        datasets.CIFAR10(tmp_path, download=True)
    assert "cifar-10-python.tar.gz" in str(caught.value)
    small_cifar10(tmp_path)
    for i in (3, 4, 5):
        write(tmp_path / "cifar-10-batches-py", f"data_batch_{i}", b"")
    with pytest.raises(RuntimeError, match="MD5 sum .* c99cafc152244af753f735de768cd"):
        datasets.CIFAR10(tmp_path)


@pytest.fixture
def packed(tmp_path):
    """A folder with an archive alone, and the class that knows its sum."""
    kind, _ = small_cifar10(tmp_path / "made")
    archive = tmp_path / "there" / kind.filename
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as members:
        members.add(tmp_path / "made" / kind.base_folder, kind.base_folder)
        members.add(__file__, "other.py")
    kind.tgz_md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    return kind, archive


def test_the_archive_is_unpacked(packed, tmp_path):
    kind, archive = packed
    with pytest.raises(RuntimeError, match="pass download=True, which unpacks it"):
        kind(archive.parent)
    made = kind(archive.parent, download=True)
    assert numpy.array_equal(made.data, kind(tmp_path / "made").data)
    assert {path.name for path in archive.parent.rglob("*") if path.is_file()} == {
        *(kind.filename, "batches.meta", "data_batch_1", "data_batch_2")
    }
    archive.unlink()
    assert len(kind(archive.parent, download=True)) == 12


def test_archives_that_are_not_unpacked(packed):
    kind, archive = packed
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-40])
    with pytest.raises(RuntimeError, match=f"MD5 sum .*{kind.tgz_md5}"):
        kind(archive.parent, download=True)
    kind.tgz_md5 = None
    for content in (whole[: len(whole) // 2], b"", b"no archive"):
        archive.write_bytes(content)
        with pytest.raises(RuntimeError, match="tar.gz is damaged"):
            kind(archive.parent, download=True)
    with tarfile.open(archive, "w:gz") as members:
        link = tarfile.TarInfo(f"{kind.base_folder}/data_batch_1")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        members.addfile(link)
    with pytest.raises(RuntimeError, match="data_batch_1 is no file"):
        kind(archive.parent, download=True)
    left = [
        p.name for p in archive.parent.rglob("*") if p.is_symlink() or ".part" in p.name
    ]
    assert left == []


class Runs:
    """Makes a file when a pickle of it is loaded by the usual unpickler."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def batch(**changes):
    return {**cifar_batch(6, 10, "labels", 1), **changes}


GOOD = dumped(batch(), True)
UNFIT = {
    "no dict": (dumped([1, 2], True), "holds a list"),
    "no data": (dumped({"labels": [1]}, True), "no array 'data'"),
    "fewer labels": (dumped(batch(labels=[1] * 5), True), r"\[6, 3072\].*5 labels"),
    "a high label": (dumped(batch(labels=[10] * 6), True), "label 10.*0 to 9"),
    "text labels": (dumped(batch(labels=["a"] * 6), True), "label a"),
    "cut": (GOOD[:-100], "is damaged"),
    "empty": (b"", "is damaged"),
    "text": (b"hello world", "is damaged"),
    "hostile shape": (
        GOOD.replace(b"J\x06\0\0\0J\0\x0c\0\0", b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f"),
        "2147483647",
    ),
    "hostile length": (b"\x80\x04\x8e" + b"\xff" * 8, "is damaged"),
    "hostile memo": (b"\x80\x02}r\xff\xff\xff\x7f.", "no array"),
    "an object array": (
        pickle.dumps({"data": numpy.array([{}]), "labels": [1]}, protocol=2),
        "is damaged|is no file",
    ),
    "another name": (b"\x80\x02cbuiltins\neval\n.", "names builtins.eval"),
    "persistent": (b"\x80\x02U\x01aQ.", "refers to values"),
    "extension": (b"\x80\x02\x82\x01.", "extension registry"),
}


@pytest.mark.parametrize("content, message", UNFIT.values(), ids=UNFIT)
def test_unfit_pickles(tmp_path, content, message):
    kind, _ = small_cifar10(tmp_path)
    md5 = write(tmp_path / "cifar-10-batches-py", "data_batch_2", content)
    kind.train_list[1][1] = md5
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match=message) as caught:
            kind(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert "data_batch_2" in str(caught.value)


@pytest.mark.parametrize("protocol", range(6))
def test_no_code_of_a_file_runs(tmp_path, protocol):
    kind, _ = small_cifar10(tmp_path)
    made = tmp_path / "made"
    content = pickle.dumps(batch(filenames=[Runs(made)]), protocol=protocol)
    kind.train_list[0][1] = write(
        tmp_path / "cifar-10-batches-py", "data_batch_1", content
    )
    with pytest.raises(RuntimeError, match="mkdir|is damaged|is no file"):
        kind(tmp_path)
    assert not made.exists()
