# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torchvision: every family of classifiers, segmentation, a detector, transforms."""

import pytest
import torch

torchvision = pytest.importorskip("torchvision")

from three_steps import assert_near, compare, in_double, to  # noqa: E402

models = torchvision.models

# The smallest of each family, and the side of its images.
CLASSIFIERS = {
    "alexnet": 64,
    "convnext_tiny": 32,
    "densenet121": 64,
    "efficientnet_b0": 64,
    "efficientnet_v2_s": 64,
    "googlenet": 64,
    "inception_v3": 128,
    "maxvit_t": 32,
    "mnasnet0_5": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "regnet_y_400mf": 64,
    "resnet18": 64,
    "resnext50_32x4d": 64,
    "shufflenet_v2_x0_5": 64,
    "squeezenet1_1": 64,
    "swin_t": 32,
    "vgg11": 32,
    "vit_b_32": 32,
    "wide_resnet50_2": 64,
}
# Families whose smallest member is large are made of fewer or narrower layers.
SMALLER = {
    "convnext_tiny": lambda: models.ConvNeXt(
        [
            models.convnext.CNBlockConfig(16, 32, 1),
            models.convnext.CNBlockConfig(32, None, 1),
        ],
        num_classes=5,
    ),
    "efficientnet_v2_s": lambda: models.EfficientNet(
        [
            models.efficientnet.FusedMBConvConfig(1, 3, 1, 8, 8, 1),
            models.efficientnet.FusedMBConvConfig(4, 3, 2, 8, 16, 1),
            models.efficientnet.MBConvConfig(4, 3, 2, 16, 24, 2),
        ],
        dropout=0.0,
        num_classes=5,
        last_channel=64,
    ),
    "maxvit_t": lambda: models.MaxVit(
        input_size=(32, 32),
        stem_channels=8,
        partition_size=4,
        block_channels=[16, 16],
        block_layers=[1, 1],
        head_dim=8,
        stochastic_depth_prob=0.0,
        num_classes=5,
    ),
    "swin_t": lambda: models.SwinTransformer(
        [4, 4], 16, [1, 1], [2, 4], [4, 4], num_classes=5
    ),
    "vgg11": lambda: small_vgg(),
    "vit_b_32": lambda: models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=5),
    "wide_resnet50_2": lambda: models.ResNet(
        models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=5, width_per_group=128
    ),
    "resnext50_32x4d": lambda: models.ResNet(
        models.resnet.Bottleneck, [1, 1, 1, 1], 5, groups=8, width_per_group=4
    ),
}


def small_vgg():
    layers = models.vgg.make_layers([8, "M", 16, "M", 32, "M"], batch_norm=True)
    model = models.VGG(layers, 5, init_weights=False)
    model.classifier = torch.nn.Linear(32 * 7 * 7, 5)
    return model


def classifier(name):
    if name in SMALLER:
        return SMALLER[name]()
    named = {}
    if name in ("googlenet", "inception_v3"):
        named = {"init_weights": True, "aux_logits": False}
    return getattr(models, name)(num_classes=5, **named)


def cross_entropy(output):
    logits = output[0] if isinstance(output, tuple) else output
    return torch.nn.functional.cross_entropy(
        logits, torch.tensor([1, 3], device=logits.device)
    )


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classification(device, name):
    side = CLASSIFIERS[name]
    batch = [torch.randn(2, 3, side, side)]
    compare(classifier(name), batch, device, loss=cross_entropy, double=True)


@pytest.mark.parametrize("name", ["lraspp_mobilenet_v3_large", "fcn", "deeplabv3"])
def test_segmentation(device, name):
    if name.startswith("lraspp"):
        model = models.segmentation.lraspp_mobilenet_v3_large(
            num_classes=3, weights_backbone=None
        )
    else:
        body = models._utils.IntermediateLayerGetter(
            models.resnet18(), {"layer2": "out"}
        )
        kind = getattr(models.segmentation, name)
        head, whole = {
            "fcn": (lambda: kind.FCNHead(128, 3), kind.FCN if name == "fcn" else None),
            "deeplabv3": (
                lambda: kind.DeepLabHead(128, 3, [2, 4]),
                getattr(kind, "DeepLabV3", None),
            ),
        }[name]
        model = whole(body, head(), None)
    compare(
        model,
        [torch.randn(2, 3, 64, 64)],
        device,
        loss=lambda o: o["out"].square().mean(),
        double=True,
    )


def detector():
    backbone = models.mobilenet_v3_small(norm_layer=torch.nn.Identity).features[:4]
    backbone.out_channels = 24
    anchors = models.detection.anchor_utils.AnchorGenerator(
        ((8, 16, 32),), ((0.5, 1.0, 2.0),)
    )
    pool = torchvision.ops.MultiScaleRoIAlign(["0"], output_size=5, sampling_ratio=2)
    return models.detection.FasterRCNN(
        backbone,
        num_classes=4,
        rpn_anchor_generator=anchors,
        box_roi_pool=pool,
        min_size=64,
        max_size=96,
        rpn_pre_nms_top_n_train=100,
        rpn_post_nms_top_n_train=50,
        # All of them: which are drawn is chance, and the devices draw differently.
        rpn_batch_size_per_image=100000,
        box_batch_size_per_image=100000,
        box_detections_per_img=10,
        box_score_thresh=0.0,
    )


def test_detection(device):
    model = detector()
    images = [torch.rand(3, 64, 64), torch.rand(3, 64, 80)]
    targets = [
        {
            "boxes": torch.tensor([[4.0, 4.0, 30.0, 40.0], [20.0, 10.0, 60.0, 50.0]]),
            "labels": torch.tensor([1, 2]),
        }
        for _ in images
    ]
    ours, theirs = compare(
        model,
        [images, targets],
        device,
        loss=lambda losses: sum(losses.values()),
        double=True,
        evaluate=False,
    )
    ours.eval(), theirs.eval()
    ours.load_state_dict(theirs.state_dict())
    with torch.no_grad():
        images = in_double(images)
        expected, found = theirs(images), ours(to(images, device))
    assert [len(f["boxes"]) for f in found] == [len(f["boxes"]) for f in expected]
    assert_near(
        [f["scores"].sort().values for f in found],
        [f["scores"].sort().values for f in expected],
        1e-6,
    )


def test_transforms(device):
    from torchvision.transforms import v2

    chain = v2.Compose(
        [
            v2.Resize(24, antialias=True),
            v2.CenterCrop(20),
            v2.RandomHorizontalFlip(1.0),
            v2.ToDtype(torch.float32, scale=True),
            v2.ColorJitter((1.2, 1.2), (0.8, 0.8), (1.1, 1.1)),
            v2.GaussianBlur(3, (1.0, 1.0)),
            v2.Normalize([0.5, 0.4, 0.3], [0.2, 0.2, 0.2]),
        ]
    )
    images = torch.randint(256, (2, 3, 32, 40), dtype=torch.uint8)
    torch.manual_seed(1)
    expected = chain(images)
    torch.manual_seed(1)
    assert_near(chain(images.to(device)), expected, 2e-2)
