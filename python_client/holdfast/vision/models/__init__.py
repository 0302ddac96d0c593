# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Networks for images, with the names that torchvision gives to their parameters, so
that its files of weights fit; `zoo` finds those files."""

from holdfast.missing import module_getattr
from holdfast.vision.models import zoo as zoo  # noqa: F401
from holdfast.vision.models.alexnet import (  # noqa: F401
    AlexNet as AlexNet,
    alexnet as alexnet,
)
from holdfast.vision.models.mobilenet import (  # noqa: F401
    MobileNetV2 as MobileNetV2,
    mobilenet_v2 as mobilenet_v2,
)
from holdfast.vision.models.resnet import (  # noqa: F401
    BasicBlock as BasicBlock,
    Bottleneck as Bottleneck,
    ResNet as ResNet,
    resnet18 as resnet18,
    resnet34 as resnet34,
    resnet50 as resnet50,
    resnet101 as resnet101,
    resnet152 as resnet152,
    resnext50_32x4d as resnext50_32x4d,
    resnext101_32x8d as resnext101_32x8d,
    wide_resnet50_2 as wide_resnet50_2,
    wide_resnet101_2 as wide_resnet101_2,
)
from holdfast.vision.models.vgg import (  # noqa: F401
    VGG as VGG,
    vgg11 as vgg11,
    vgg11_bn as vgg11_bn,
    vgg13 as vgg13,
    vgg13_bn as vgg13_bn,
    vgg16 as vgg16,
    vgg16_bn as vgg16_bn,
    vgg19 as vgg19,
    vgg19_bn as vgg19_bn,
)
from holdfast.vision.models.zoo import (  # noqa: F401
    get_model as get_model,
    get_model_builder as get_model_builder,
    get_weight as get_weight,
    list_models as list_models,
)

# AlexNet_Weights, ResNet18_Weights, ...
globals().update(zoo.ENUMS)

__getattr__ = module_getattr("torchvision.models")
