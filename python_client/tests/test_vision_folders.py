# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Image folders and images of noise."""

import pickle

import numpy
import pytest

from holdfast.utils import data
from holdfast.vision import datasets

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def root(tmp_path):
    """cat: two images, one of them deeper; dog: a grey one; a text beside them."""
    for place, (name, color) in enumerate(
        [("cat/b.png", "red"), ("cat/deep/a.JPG", "blue"), ("dog/1.png", None)]
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if color:
            Image.new("RGB", (4, 3), color).save(path)
        else:
            Image.new("L", (4, 3), 40 + place).save(path)
    (tmp_path / "cat/notes.txt").write_text("no image")
    return tmp_path


def test_image_folder(root):
    made = datasets.ImageFolder(root)
    assert made.classes == ["cat", "dog"] and made.class_to_idx == {"cat": 0, "dog": 1}
    names = ["cat/b.png", "cat/deep/a.JPG", "dog/1.png"]
    assert made.samples == [(f"{root}/{n}", i) for n, i in zip(names, [0, 0, 1])]
    assert made.imgs == made.samples and made.targets == [0, 0, 1]
    image, target = made[2]
    assert (image.mode, image.size, target) == ("RGB", (4, 3), 1)
    assert image.getpixel((0, 0)) == (42, 42, 42)
    assert made[0][0].getpixel((1, 1)) == (255, 0, 0)
    assert "Number of datapoints: 3" in repr(made)
    again = pickle.loads(pickle.dumps(made))
    assert again.samples == made.samples


def test_folder_options(root):
    made = datasets.ImageFolder(
        root,
        transform=numpy.asarray,
        target_transform=lambda target: -target,
        loader=lambda path: Image.open(path).convert("L"),
        is_valid_file=lambda path: path.endswith("1.png") or "notes" in path,
    )
    assert [path.rpartition("/")[2] for path, _ in made.samples] == [
        "notes.txt",
        "1.png",
    ]
    assert made[1][0].shape == (3, 4) and made[1][1] == -1
    texts = datasets.DatasetFolder(
        root, lambda path: open(path).read(), (".txt",), allow_empty=True
    )
    assert len(texts) == 1 and texts[0] == ("no image", 0) and len(texts.classes) == 2


def test_folders_without_what_is_wanted(root, tmp_path):
    (root / "eel").mkdir()
    with pytest.raises(FileNotFoundError, match="the classes eel. Supported.*webp"):
        datasets.ImageFolder(root)
    assert datasets.ImageFolder(root, allow_empty=True).classes[2] == "eel"
    with pytest.raises(FileNotFoundError, match="any class folder in"):
        datasets.ImageFolder(root / "eel")
    with pytest.raises(FileNotFoundError):
        datasets.ImageFolder(root / "nowhere")
    with pytest.raises(ValueError, match="at the same time"):
        datasets.DatasetFolder(root, str)
    (root / "eel" / "x.png").write_bytes(b"no image")
    with pytest.raises(OSError, match="x.png"):
        datasets.ImageFolder(root)[3]


def test_folders_in_workers(torch, root):
    made = datasets.ImageFolder(root, transform=numpy.asarray)
    ((images, targets),) = data.DataLoader(made, batch_size=3, num_workers=2)
    assert images.shape == (3, 3, 4, 3) and targets.tolist() == [0, 0, 1]
    assert images[0, 0, 0].tolist() == [255, 0, 0]


def test_fake_data_depends_on_its_index_alone(torch):
    made = datasets.FakeData(6, (3, 8, 5), num_classes=4)
    torch.manual_seed(3)
    first = torch.rand(2)
    torch.manual_seed(3)
    samples = [made[i] for i in range(6)]
    assert torch.equal(torch.rand(2), first)
    image, target = samples[1]
    assert (image.mode, image.size, type(target)) == ("RGB", (5, 8), int)
    assert all(0 <= target < 4 for _, target in samples)
    arrays = [numpy.asarray(image) for image, _ in samples]
    assert not numpy.array_equal(arrays[0], arrays[1])
    moved = datasets.FakeData(6, (3, 8, 5), 4, random_offset=2)
    assert numpy.array_equal(numpy.asarray(moved[1][0]), arrays[3])
    assert moved[1][1] == samples[3][1]
    loader = data.DataLoader(
        datasets.FakeData(6, (3, 8, 5), 4, transform=numpy.array), 3, num_workers=2
    )
    batches = torch.cat([images for images, _ in loader])
    assert numpy.array_equal(batches.numpy(), numpy.stack(arrays))
    with pytest.raises(IndexError, match="6 of 6"):
        made[6]


def test_fake_pixels_are_noise_as_bytes(torch):
    image, _ = datasets.FakeData(1, (1, 64, 64), random_offset=5)[0]
    noise = torch.randn(1, 64, 64, generator=torch.Generator().manual_seed(5))
    wanted = (noise.numpy()[0] * 255).astype(numpy.int64).astype(numpy.uint8)
    assert image.mode == "L" and numpy.array_equal(numpy.asarray(image), wanted)
    with pytest.raises(ValueError, match=r"\(5, 2, 2\)"):
        datasets.FakeData(1, (5, 2, 2))[0]


def test_transforms_exclude_each_other():
    with pytest.raises(ValueError, match="Only transforms or"):
        datasets.VisionDataset("x", transforms=max, transform=min)
    with pytest.raises(NotImplementedError, match="VisionDataset must define"):
        datasets.VisionDataset("x")[0]


def test_missing_names_are_named():
    with pytest.raises(
        AttributeError, match="holdfast has no torchvision.datasets.CelebA"
    ):
        datasets.CelebA  # noqa: B018
