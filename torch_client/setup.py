# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Builds holdfast_torch's library against the installed PyTorch's headers:
`python setup.py build_ext --inplace`; the same file lies in the wheel, beside the
sources, for the PyTorch of other machines (holdfast_torch/library.py)."""

import glob
import os
import shutil
import sys

import setuptools
import torch
from setuptools.command.build_py import build_py
from torch.utils import cpp_extension

HERE = os.path.dirname(os.path.abspath(__file__))
# Where holdfast_torch/library.py looks.
SERIES = "torch_" + "_".join(torch.__version__.split(".")[:2])
SOURCES = ["setup.py", "client_api.h", "csrc"]
# `build_ext --inplace` copies the library there and makes no folder.
if "--inplace" in sys.argv:
    os.makedirs(os.path.join(HERE, "holdfast_torch", "built", SERIES), exist_ok=True)


class WithSources(build_py):
    """The wheel carries what a library for another series is built from."""

    def run(self):
        super().run()
        folder = os.path.join(self.build_lib, "holdfast_torch", "sources")
        for name in SOURCES:
            path, to = os.path.join(HERE, name), os.path.join(folder, name)
            if os.path.isdir(path):
                shutil.copytree(path, to, dirs_exist_ok=True)
            else:
                self.mkpath(folder)
                shutil.copyfile(path, to)


setuptools.setup(
    packages=setuptools.find_packages(include=["holdfast_torch*"]),
    ext_modules=[
        cpp_extension.CppExtension(
            f"holdfast_torch.built.{SERIES}._torch",
            sorted(glob.glob("csrc/*.cc", root_dir=HERE)),
            include_dirs=[HERE],
            extra_compile_args=["-O2", "-fvisibility=hidden", "-g0"],
        )
    ],
    cmdclass={"build_ext": cpp_extension.BuildExtension, "build_py": WithSources},
)
