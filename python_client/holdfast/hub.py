# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.hub from local files: nothing is downloaded.

Weights are looked for in `get_dir()/checkpoints` under the last part of their
address; a repository is a folder with a hubconf.py.
"""

import hashlib
import importlib.util
import os
import re
import sys
from urllib.parse import urlparse

from holdfast.errors import UnsupportedError
from holdfast.missing import module_getattr

_HASH = re.compile(r"-([a-f0-9]{6,})\.")
_dir = None


def get_dir():
    """The folder of set_dir(), of TORCH_HOME, or ~/.cache/torch/hub."""
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def _get_torch_home():
    # torchvision asks for it.
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(
        os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))
    )


def set_dir(d):
    """Sets the folder of get_dir()."""
    global _dir
    _dir = os.path.expanduser(d)


def load_state_dict_from_url(
    url,
    model_dir=None,
    map_location=None,
    progress=True,
    check_hash=False,
    file_name=None,
    weights_only=True,
):
    """load() of the file that a download of `url` would have put into `model_dir`.

    `check_hash`: the name ends in the beginning of its SHA-256, as in
    "resnet18-f37072fd.pth" (RuntimeError if it does not fit). FileNotFoundError,
    naming the path, if the file is not there.
    """
    from holdfast.serialization import load

    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"holdfast downloads nothing: get {url} and put it at {path}"
        )
    if check_hash:
        _check_hash(path, name)
    return load(path, map_location=map_location, weights_only=weights_only)


def _check_hash(path, name):
    found = _HASH.search(name)
    if found is None:
        raise ValueError(
            f"check_hash: {name!r} has no hash in its name, as name-f37072fd.pth has"
        )
    digest = sha256(path)
    if not digest.startswith(found[1]):
        raise RuntimeError(
            f'invalid hash value (expected "{found[1]}", got "{digest}") of {path}'
        )


def sha256(path):
    """The file's SHA-256, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Refused: see the module."""
    raise UnsupportedError(f"holdfast downloads nothing: get {url} and put it at {dst}")


_download_url_to_file = download_url_to_file


def _hubconf(repo_or_dir, source):
    if source != "local":
        raise UnsupportedError(
            f"holdfast downloads nothing: get the repository {repo_or_dir} and pass "
            "its folder with source='local'"
        )
    path = os.path.join(repo_or_dir, "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no {path}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, repo_or_dir)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(repo_or_dir)
    return module


def _entry(module, name):
    entry = getattr(module, name, None)
    if not callable(entry):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return entry


def load(repo_or_dir, model, *args, source="github", **kwargs):
    """What hubconf.py of a folder (source="local") gives under the name `model`."""
    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(option, None)
    return _entry(_hubconf(repo_or_dir, source), model)(*args, **kwargs)


def list(repo_or_dir, source="github", **options):
    """The names that load() takes."""
    module = _hubconf(repo_or_dir, source)
    return [n for n, v in vars(module).items() if callable(v) and n[0] != "_"]


def help(repo_or_dir, model, source="github", **options):
    """The docstring of one of them."""
    return _entry(_hubconf(repo_or_dir, source), model).__doc__


def tqdm(iterable=None, *args, **kwargs):
    """The package tqdm's bar; without the package, the iterable itself."""
    try:
        from tqdm.auto import tqdm as bar
    except ImportError:
        return iterable
    return bar(iterable, *args, **kwargs)


__getattr__ = module_getattr("torch.hub")
