# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Builds holdfast_torch._torch against the installed PyTorch's headers:
`python setup.py build_ext --inplace`."""

import glob
import os

import setuptools
from torch.utils import cpp_extension

HERE = os.path.dirname(os.path.abspath(__file__))

setuptools.setup(
    name="holdfast-torch",
    version="0.1.0",
    packages=["holdfast_torch"],
    ext_modules=[
        cpp_extension.CppExtension(
            "holdfast_torch._torch",
            sorted(glob.glob("csrc/*.cc", root_dir=HERE)),
            include_dirs=[HERE],
            extra_compile_args=["-O2", "-fvisibility=hidden", "-g0"],
        )
    ],
    cmdclass={"build_ext": cpp_extension.BuildExtension},
)
