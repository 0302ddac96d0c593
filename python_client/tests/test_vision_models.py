# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Networks for images, and weights found by their names."""

import os

import pytest

from holdfast.vision import models
from holdfast.vision.models import zoo

# Figures of the papers' networks, which their files of weights have.
PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg11": 132_863_336,
    "vgg16_bn": 138_365_992,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnext50_32x4d": 25_028_904,
    "wide_resnet50_2": 68_883_240,
    "mobilenet_v2": 3_504_872,
}


@pytest.fixture
def zoo_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_MODEL_ZOO", str(tmp_path / "zoo"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    return tmp_path / "zoo"


def small(name="resnet18", **kwargs):
    return models.get_model(name, num_classes=3, **kwargs)


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters(torch, name):
    model = models.get_model(name)
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", ["alexnet", "vgg11", "resnet50", "mobilenet_v2"])
def test_a_training_step(torch, name):
    torch.manual_seed(0)
    model = models.get_model(name, num_classes=7)
    y = model(torch.randn(2, 3, 64, 64))
    assert y.shape == (2, 7)
    y.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(
    "name, keys",
    [
        ("alexnet", ["features.10.weight", "classifier.6.bias"]),
        ("vgg11_bn", ["features.26.running_var", "classifier.3.weight"]),
        ("resnet18", ["layer2.0.downsample.1.weight", "layer4.1.conv2.weight"]),
        ("resnet50", ["layer1.0.downsample.0.weight", "layer3.5.bn3.bias"]),
        ("mobilenet_v2", ["features.18.1.bias", "features.2.conv.0.0.weight"]),
    ],
)
def test_names_of_parameters_are_those_of_files(torch, name, keys):
    assert set(keys) <= set(models.get_model(name).state_dict())


def test_dilation_takes_the_place_of_strides(torch):
    model = small("resnet50", replace_stride_with_dilation=(False, True, True))
    assert model.layer4(model.layer3(torch.ones(1, 512, 8, 8))).shape[2:] == (8, 8)
    with pytest.raises(ValueError, match="3-element tuple, got \\(True,\\)"):
        small("resnet50", replace_stride_with_dilation=(True,))


def test_blocks_start_as_their_shortcut(torch):
    model = small(zero_init_residual=True)
    assert model.layer1[0].bn2.weight.abs().sum().item() == 0


def test_weights_are_found_by_name(torch, zoo_folder):
    torch.manual_seed(1)
    model = small()
    path = zoo.save(model, "resnet18")
    assert os.path.dirname(path) == str(zoo_folder)
    assert [p.name for p in zoo_folder.iterdir()] == [os.path.basename(path)]
    for weights in (True, "DEFAULT", models.ResNet18_Weights.DEFAULT, path):
        again = small(weights=weights)
        assert torch.equal(again.conv1.weight, model.conv1.weight)
    assert torch.equal(small(pretrained=True).fc.bias, model.fc.bias)
    found = models.get_weight("ResNet18_Weights.IMAGENET1K_V1").get_state_dict()
    assert list(found) == list(model.state_dict())


def test_damaged_weights_are_refused(torch, zoo_folder):
    path = zoo.save(small(), "resnet18")
    with open(path, "r+b") as file:
        file.seek(1000)
        file.write(b"?")
    with pytest.raises(RuntimeError, match="damaged or another file: its SHA-256"):
        small(weights="DEFAULT")


def test_missing_weights_say_where_to_put_them(torch, zoo_folder):
    with pytest.raises(FileNotFoundError, match="downloads nothing") as error:
        small(weights="DEFAULT")
    assert str(zoo_folder) in str(error.value)


def test_several_files_are_not_chosen_from(torch, zoo_folder):
    zoo_folder.mkdir()
    for digits in ("0" * 8, "1" * 8):
        (zoo_folder / f"resnet18-{digits}.pth").touch()
    with pytest.raises(ValueError, match="several files"):
        small(weights=True)


def test_weights_of_another_model_are_refused(torch):
    with pytest.raises(ValueError, match="takes its own weights"):
        small(weights=models.AlexNet_Weights.DEFAULT)


def test_weights_for_other_classes_have_pytorchs_message(torch, zoo_folder):
    zoo.save(small(), "resnet18")
    with pytest.raises(RuntimeError, match="size mismatch for fc.weight"):
        models.resnet18(weights=True)


def test_files_of_safetensors(torch, zoo_folder):
    pytest.importorskip("safetensors")
    from holdfast.safetensors import save_file

    model = small()
    zoo_folder.mkdir()
    path = zoo_folder / "mine.safetensors"
    save_file(model.state_dict(), str(path))
    assert torch.equal(small(weights=path).fc.weight, model.fc.weight)


def test_lists(torch):
    assert "vgg16" in models.list_models()
    assert models.list_models(include="resnet*", exclude=["*101", "*152"]) == [
        "resnet18",
        "resnet34",
        "resnet50",
    ]
    with pytest.raises(ValueError, match="Unknown model nope. There are alexnet"):
        models.get_model("nope")
    with pytest.raises(ValueError, match="Unknown weights"):
        models.get_weight("ResNet18_Weights.NOPE")


def test_what_images_go_through(torch):
    prepare = models.ResNet18_Weights.DEFAULT.transforms()
    image = torch.full((3, 300, 400), 255, dtype=torch.uint8)
    prepared = prepare(image)
    assert prepared.shape == (3, 224, 224)
    assert prepared[:, 0, 0].tolist() == pytest.approx(
        [(1 - m) / s for m, s in zip(zoo._MEAN, zoo._DEVIATION)], 1e-5
    )
