# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.special: the special functions under SciPy's names."""

import holdfast as _hf
from holdfast import missing
from holdfast._registry import name_for_pickle as _name_for_pickle
from holdfast.airy import airy_ai as airy_ai  # noqa: F401
from holdfast.polynomials import NAMED as _polynomials
from holdfast.special_functions import (  # noqa: F401
    NAMED as NAMED,
    spherical_bessel_j0 as spherical_bessel_j0,
)

for _name, _target in {
    "digamma": "digamma",
    "entr": "entr",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "ndtr": "ndtr",
    "polygamma": "polygamma",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlog1py": "xlog1py",
    "xlogy": "xlogy",
    "zeta": "zeta",
}.items():
    globals()[_name] = getattr(_hf, _target)
globals().update(NAMED)
_name_for_pickle(NAMED, "holdfast.special")
globals().update(_polynomials)

__getattr__ = missing.module_getattr("torch.special")
