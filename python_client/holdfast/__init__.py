# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Holdfast: tensors that live on a daemon, with PyTorch's API.

`import holdfast as torch` runs a PyTorch program on the daemon that
connect() or HOLDFAST_ADDRESS names, or on a private one.
"""

# Importing a module of these registers its functions and methods.
from holdfast import (  # noqa: F401
    _C,
    _printing,
    arrange,
    array_protocols,
    autograd,
    callables,
    complex_numbers,
    contraction,
    copies,
    covariance,
    creation,
    distances,
    dtypes,
    elementwise,
    errors,
    fake_quantization,
    function_help,
    histograms,
    incomplete_gamma,
    indexed,
    indexing,
    linalg,
    low_rank,
    masks,
    memory,
    missing,
    named_tensors,
    native_norms,
    overrides,
    products,
    random,
    reductions,
    sampling,
    scans,
    segments,
    sessions,
    settings,
    shapes,
    sorting,
    special_functions,
    spectral,
    statistics,
    tensor_extras,
    tensor_queries,
    typed_tensors,
    views,
)
from holdfast._C import (  # noqa: F401
    Session,
    Size,
    Tensor,
    as_tensor,
    from_numpy,
    tensor,
)
from holdfast._device import device  # noqa: F401
from holdfast._ops import TABLE as _TABLE
from holdfast._registry import FUNCTIONS as _FUNCTIONS
from holdfast._registry import name_for_pickle as _name_for_pickle
from holdfast.errors import OutOfMemoryError  # noqa: F401
from holdfast.memory_formats import (  # noqa: F401
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
    strided,
)
from holdfast.random import Generator, default_generator  # noqa: F401
from holdfast.version import __version__  # noqa: F401
from holdfast._distribution import check as _check
from math import e, inf, nan, pi  # noqa: F401

_check(__version__)

_Module = type(errors)
# From here on `bool`, `max`, `sum`, ... are PyTorch's: keep code above.
globals().update(_TABLE)
# nn.functional's also take words as padding, and inputs without a batch.
del conv2d, conv3d  # noqa: F821
globals().update(_FUNCTIONS)
function_help.complete(_FUNCTIONS)
_name_for_pickle({n: f for n, f in globals().items() if _FUNCTIONS.get(n) is f})
globals().update(dtypes.NAMES)
globals().update(typed_tensors.NAMES)
dtype = _C.dtype
newaxis = None
# What PyTorch was built with: asked by programs that choose a device.
has_cuda = has_mps = False
# What PyTorch has in both places.
_IN_FUNCTIONAL = """
    adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d bilinear celu
    celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cosine_similarity dropout feature_alpha_dropout group_norm
    hardshrink layer_norm max_pool1d max_pool1d_with_indices max_pool2d max_pool3d
    native_channel_shuffle pairwise_distance pixel_shuffle pixel_unshuffle prelu
    rms_norm rrelu rrelu_ selu selu_ threshold threshold_
"""
# Not every program needs these; `import holdfast` stays short.
_SUBMODULES = (
    "_six",
    "_tensor",
    "_utils",
    "accelerator",
    "amp",
    "ao",
    "array_api",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "daemon",
    "distributed",
    "distributions",
    "fft",
    "foreach",
    "func",
    "functional",
    "fx",
    "hub",
    "jit",
    "masked",
    "mps",
    "multiprocessing",
    "nn",
    "onnx",
    "ops",
    "optim",
    "profiler",
    "quantization",
    "return_types",
    "safetensors",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "types",
    "utils",
    "version",
    "vision",
    "xpu",
)
_AUTOCAST_STATE = """
    clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype
    get_autocast_gpu_dtype is_autocast_cpu_enabled is_autocast_enabled
    set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype
    set_autocast_enabled set_autocast_gpu_dtype
"""
_FOREACH = """
    abs abs_ acos acos_ add add_ addcdiv addcdiv_ addcmul addcmul_ asin asin_ atan atan_
    ceil ceil_ clamp_max clamp_max_ clamp_min clamp_min_ clone copy_ cos cos_ cosh cosh_
    div div_ erf erf_ erfc erfc_ exp exp_ expm1 expm1_ floor floor_ frac frac_ lerp
    lerp_ lgamma lgamma_ log log10 log10_ log1p log1p_ log2 log2_ log_ max maximum
    maximum_ minimum minimum_ mm mul mul_ neg neg_ norm pow pow_ reciprocal reciprocal_
    round round_ rsqrt rsqrt_ sigmoid sigmoid_ sign sign_ sin sin_ sinh sinh_ sqrt sqrt_
    sub sub_ tan tan_ tanh tanh_ trunc trunc_ zero_
"""
_GRID_SAMPLERS = ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
_ELSEWHERE = {
    "load": "serialization",
    "save": "serialization",
    "autocast": "amp",
    **dict.fromkeys(_AUTOCAST_STATE.split(), "amp.state"),
    "vmap": "func",
    **dict.fromkeys(("TypedStorage", "UntypedStorage"), "storage"),
    "load_ipython_extension": "notebook",
    "unload_ipython_extension": "notebook",
    **dict.fromkeys(("dsmm", "smm", "sparse_coo_tensor", "spmm"), "sparse"),
    **dict.fromkeys(_IN_FUNCTIONAL.split(), "nn.functional"),
    **dict.fromkeys(_GRID_SAMPLERS, "nn.functional.sampling"),
    **dict.fromkeys((f"_foreach_{name}" for name in _FOREACH.split()), "foreach"),
}
__getattr__ = missing.module_getattr("torch", _SUBMODULES, _ELSEWHERE)


def __dir__():
    """What there is for programs, imported or not: for completion. The modules that
    the package is made of are not."""
    public = {*_SUBMODULES, "autograd", "linalg", "overrides", "random"}
    parts = {name for name, value in globals().items() if isinstance(value, _Module)}
    return sorted(({*globals(), *_ELSEWHERE} - parts) | public | {"errors"})
