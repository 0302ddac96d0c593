# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""timm: architectures of every kind, the smallest of each, on small images."""

import pytest
import torch

timm = pytest.importorskip("timm")

from three_steps import compare, tensors  # noqa: E402

CONVOLUTIONS = (
    "convnext_atto convnextv2_atto cspresnet50 densenet121 dla46_c dpn48b "
    "edgenext_xx_small efficientnet_lite0 ese_vovnet19b_dw fbnetc_100 gernet_s "
    "ghostnet_050 hardcorenas_a hgnetv2_b0 inception_next_atto lcnet_035 "
    "mambaout_femto mixnet_s mnasnet_small mobilenetv2_035 mobilenetv3_small_050 "
    "mobilenetv4_conv_small_035 mobileone_s0 nf_resnet26 poolformer_s12 regnetx_002 "
    "regnety_002 repghostnet_050 repvgg_a0 repvit_m0_9 resnet10t resnetv2_18 shvit_s1 "
    "skresnet18 starnet_s1 test_byobnet test_efficientnet test_nfnet test_resnet "
    "tinynet_e"
).split()
ATTENTION = (
    "coat_lite_tiny convit_tiny deit_tiny_patch16_224 efficientformerv2_s0 "
    "efficientvit_b0 efficientvit_m0 eva02_tiny_patch14_224 fastvit_t8 levit_128s "
    "maxvit_pico_rw_256 mobilevit_xxs mobilevitv2_050 pit_ti_224 pvt_v2_b0 "
    "swiftformer_xs test_vit test_vit2 test_vit3 test_vit4 tiny_vit_5m_224 "
    "visformer_tiny vit_tiny_patch16_224 xcit_nano_12_p16_224"
).split()
OTHERS = "gmlp_ti16_224 lambda_resnet26rpt_256 botnet26t_256 gmixer_12_224".split()
# These end in a single pixel of 64 x 64, where a batch norm of two values is a sign.
LARGER = {"efficientvit_m0": 128, "shvit_s1": 128}
# Here it is the head's, after pooling: one value of each image.
ROWS = {"mobilenetv4_conv_small_035": 8}
ALL = [*CONVOLUTIONS, *ATTENTION, *OTHERS]


def model_of(name):
    """The architecture for the test's images, where it wants to know their size."""
    side = LARGER.get(name, 64)
    try:
        return timm.create_model(name, num_classes=5, img_size=side)
    except TypeError:
        return timm.create_model(name, num_classes=5)


def cross_entropy(output):
    logits = list(tensors(output))[0]
    labels = torch.arange(len(logits), device=logits.device) % 5
    return torch.nn.functional.cross_entropy(logits, labels)


@pytest.mark.parametrize("name", ALL)
def test_training(device, name):
    side = LARGER.get(name, 64)
    batch = [torch.randn(ROWS.get(name, 2), 3, side, side)]
    compare(model_of(name), batch, device, loss=cross_entropy, double=True)


@pytest.mark.parametrize(
    "name", ["adamw", "adafactor", "lamb", "lion", "adopt", "nadamw"]
)
def test_optimizers(device, name):
    from timm.optim import create_optimizer_v2

    def optimizer(parameters):
        return create_optimizer_v2(list(parameters), opt=name, lr=1e-3)

    batch = [torch.randn(2, 3, 32, 32)]
    model = timm.create_model("test_vit2", num_classes=5, img_size=32)
    compare(model, batch, device, loss=cross_entropy, optimizer=optimizer, double=True)


@pytest.mark.xfail(
    reason="ModelEmaV3 makes a torch.Generator; the device has the session's alone",
    raises=NotImplementedError,
    strict=True,
)
def test_mixup_and_averaged_weights(device):
    from timm.data import Mixup
    from timm.loss import SoftTargetCrossEntropy
    from timm.utils import ModelEmaV3

    mixup = Mixup(num_classes=5, mixup_alpha=0.5)
    images, labels = mixup(
        torch.randn(4, 3, 32, 32, device=device),
        torch.tensor([0, 1, 2, 3], device=device),
    )
    assert labels.shape == (4, 5) and torch.allclose(labels.sum(1).cpu(), torch.ones(4))
    model = timm.create_model("test_vit2", num_classes=5, img_size=32).to(device)
    average = ModelEmaV3(model, decay=0.5)
    before = [p.detach().cpu() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    SoftTargetCrossEntropy()(model(images), labels).backward()
    optimizer.step()
    average.update(model)
    for old, now, mean in zip(before, model.parameters(), average.module.parameters()):
        assert torch.allclose((old + now.cpu()) / 2, mean.detach().cpu(), atol=1e-6)
