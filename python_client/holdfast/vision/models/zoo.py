# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Weights by a model's name, from local or shared folders.

A file is called NAME-HASH.pth (or .safetensors), HASH being the first eight or more
digits of its SHA-256, as PyTorch's files are: resnet18-f37072fd.pth. It is looked for
in the folders of HOLDFAST_MODEL_ZOO (joined by ":"), then in torch.hub's
`get_dir()/checkpoints`. What does not match its hash is refused. Nothing is
downloaded.
"""

import enum
import functools
import os
import re
import tempfile

from holdfast import hub

# name -> function, as register() has seen them; name of an enum -> the enum.
BUILDERS = {}
ENUMS = {}
_SUFFIXES = (".pth", ".pt", ".safetensors")


# Of ImageNet's pixels, by channel.
_MEAN = (0.485, 0.456, 0.406)
_DEVIATION = (0.229, 0.224, 0.225)


def _to_float(image):
    from holdfast import Tensor, float32
    from holdfast.vision.transforms import functional

    if isinstance(image, Tensor):
        return functional.convert_image_dtype(image, float32)
    return functional.to_tensor(image)


class Weights(enum.Enum):
    """What a model's `weights` may be; the value is the model's name."""

    def transforms(self):
        """What ImageNet's networks want done to a PIL image or a uint8 tensor
        [..., 3, H, W]: its middle, 224 x 224, in their mean and deviation."""
        from holdfast.vision import transforms

        return transforms.Compose(
            [
                transforms.Resize(256),
                transforms.CenterCrop(224),
                _to_float,
                transforms.Normalize(_MEAN, _DEVIATION),
            ]
        )

    def get_state_dict(self, progress=True, check_hash=True):
        """The parameters in the zoo's file."""
        return load(self.value)

    @property
    def url(self):
        """Where the file is."""
        return find(self.value)


def register(enum_name):
    """Decorator for a function that makes a model: its `weights` (and PyTorch's old
    `pretrained`) become names, files or members of `<enum_name>_Weights`."""

    def wrap(build):
        name = build.__name__

        @functools.wraps(build)
        def model(*, weights=None, progress=True, pretrained=None, **kwargs):
            made = build(**kwargs)
            if pretrained and weights is None:
                weights = True
            if weights is not None and weights is not False:
                made.load_state_dict(load(_file_of(name, weights)))
            return made

        BUILDERS[name] = model
        members = {"IMAGENET1K_V1": name, "DEFAULT": name}
        ENUMS[f"{enum_name}_Weights"] = Weights(
            f"{enum_name}_Weights", members, module=__name__
        )
        return model

    return wrap


def _file_of(name, weights):
    """`weights` of a model function as a path."""
    if isinstance(weights, Weights):
        if weights.value != name:
            raise ValueError(f"{name}() takes its own weights. Got {weights!r}.")
        return find(name)
    if weights is True or str(weights).upper() in ("DEFAULT", "IMAGENET1K_V1"):
        return find(name)
    return os.fspath(weights)


def folders():
    """Where files are looked for, in this order."""
    shared = os.environ.get("HOLDFAST_MODEL_ZOO", "")
    own = os.path.join(hub.get_dir(), "checkpoints")
    return [f for f in shared.split(os.pathsep) if f] + [own]


def find(name):
    """The path of the one file of that name in the first folder that has any.

    FileNotFoundError where none has; ValueError where a folder has several.
    """
    pattern = re.compile(
        re.escape(name) + r"(-owt)?-[0-9a-f]{8,64}(" + "|".join(_SUFFIXES) + ")"
    )
    for folder in folders():
        try:
            files = sorted(f for f in os.listdir(folder) if pattern.fullmatch(f))
        except OSError:
            continue
        if len(files) > 1:
            raise ValueError(
                f"{folder} has several files of weights for {name}: "
                f"{', '.join(files)}. Name one: weights={files[-1]!r} with its folder."
            )
        if files:
            return os.path.join(folder, files[0])
    raise FileNotFoundError(
        f"no weights for {name}: looked for {name}-<first digits of its SHA-256>.pth "
        f"in {', '.join(folders())}. holdfast downloads nothing: put the file there, "
        "add its folder to HOLDFAST_MODEL_ZOO, or give its path as `weights`."
    )


def load(source):
    """The state_dict in a file, or in the one that find() finds for a model's name.

    RuntimeError if the file is not what its name's hash says. No code runs from it.
    """
    path = find(source) if source in BUILDERS else source
    if not os.path.exists(path):
        raise FileNotFoundError(f"no file of weights at {path}")
    stem, suffix = os.path.splitext(os.path.basename(path))
    wanted = re.search(r"-([0-9a-f]{8,64})$", stem)
    if wanted is not None:
        found = hub.sha256(path)
        if not found.startswith(wanted[1]):
            raise RuntimeError(
                f"{path} is damaged or another file: its SHA-256 begins with "
                f"{found[: len(wanted[1])]}, its name says {wanted[1]}."
            )
    if suffix == ".safetensors":
        from holdfast.safetensors import load_file

        return load_file(path)
    from holdfast.serialization import load as load_zip

    return load_zip(path, weights_only=True)


def save(model, name, folder=None):
    """Writes model.state_dict() as NAME-HASH.pth into `folder` (the first of
    folders()), whole or not at all; returns the path."""
    from holdfast.serialization import save as save_zip

    folder = folder or folders()[0]
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(suffix=".part", dir=folder)
    os.close(handle)
    try:
        save_zip(model.state_dict(), temporary)
        path = os.path.join(folder, f"{name}-{hub.sha256(temporary)[:8]}.pth")
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
    return path


def list_models(module=None, include=None, exclude=None):
    """Names of models, sorted; `include` and `exclude` are file name patterns."""
    from fnmatch import fnmatch

    def any_of(name, patterns):
        patterns = [patterns] if isinstance(patterns, str) else patterns
        return any(fnmatch(name, pattern) for pattern in patterns)

    return [
        name
        for name in sorted(BUILDERS)
        if (not include or any_of(name, include))
        and not (exclude and any_of(name, exclude))
    ]


def get_model_builder(name):
    """The function of that name. ValueError where there is none."""
    try:
        return BUILDERS[name.lower()]
    except KeyError:
        raise ValueError(
            f"Unknown model {name}. There are {', '.join(list_models())}."
        ) from None


def get_model(name, **config):
    """The model of that name, made with those arguments."""
    return get_model_builder(name)(**config)


def get_weight(name):
    """ "ResNet18_Weights.DEFAULT" as that member. ValueError where there is none."""
    family, _, member = name.partition(".")
    if family not in ENUMS or member not in ENUMS[family].__members__:
        raise ValueError(f"Unknown weights {name}. There are {', '.join(ENUMS)}.")
    return ENUMS[family][member]
