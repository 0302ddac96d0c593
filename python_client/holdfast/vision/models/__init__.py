# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Networks for images, with the names that torchvision gives to their parameters, so
that its files of weights fit; `zoo` finds those files."""

from holdfast.missing import module_getattr
from holdfast.vision.models import zoo  # noqa: F401
from holdfast.vision.models.alexnet import AlexNet, alexnet  # noqa: F401
from holdfast.vision.models.mobilenet import MobileNetV2, mobilenet_v2  # noqa: F401
from holdfast.vision.models.resnet import (  # noqa: F401
    BasicBlock,
    Bottleneck,
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50_32x4d,
    resnext101_32x8d,
    wide_resnet50_2,
    wide_resnet101_2,
)
from holdfast.vision.models.vgg import (  # noqa: F401
    VGG,
    vgg11,
    vgg11_bn,
    vgg13,
    vgg13_bn,
    vgg16,
    vgg16_bn,
    vgg19,
    vgg19_bn,
)
from holdfast.vision.models.zoo import (  # noqa: F401
    get_model,
    get_model_builder,
    get_weight,
    list_models,
)

# AlexNet_Weights, ResNet18_Weights, ...
globals().update(zoo.ENUMS)

__getattr__ = module_getattr("torchvision.models")
