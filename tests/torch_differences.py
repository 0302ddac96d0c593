# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Where results differ from PyTorch 1.13's on purpose, and why: the one table
of test_torch_agreement.py, which fails for a difference that is not here and
for a row that no longer differs.
"""

import dataclasses

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
HALVES = ("float16", "bfloat16")
COMPLEX = ("complex64", "complex128")

# Functions of holdfast's that PyTorch 1.13 lacks under that name, or cannot
# run on the CPU; with internal rows of the op table, which are nobody's.
NOT_IN_TORCH = set(
    """
    _batch_norm_with_update _chunk_cat _native_batch_norm_legit _unsafe_masked_index
    _unsafe_masked_index_put_accumulate linalg.matrix_sqrth linalg.polar
    nn.functional.linear_cross_entropy nonzero_static
    activation_backward adam adaptive_max_pool2d attention attention_backward
    avg_pool2d_backward
    batch_norm_backward col2im constant_pad conv2d_backward_input
    conv2d_backward_weight conv3d_backward_input conv3d_backward_weight
    ctc_loss_backward entr group_norm_backward huber im2col lexsort
    linalg_lu_permutation linear_scan multigammaln log_softmax_backward
    max_pool2d_backward max_pool2d_gather ndtr nll_loss_backward
    nn.functional.lp_pool3d nn.functional.rms_norm
    nn.functional.scaled_dot_product_attention relu_backward resample2d
    resample2d_backward rnn_layer rnn_layer_backward select_backward
    optimizer_step sgd slice_backward softmax_backward to_device grid_taps
    weighted_gather
    weighted_gather_backward_input weighted_gather_backward_weight xlog1py zeta
    """.split()
)


# Products of products, each rounded to the type: errors are as large as the
# largest element's, also in elements where terms cancel, and whose are the smaller
# ones changes with the processor.
ROUNDED_ON_THE_WAY = {"linalg.matrix_power", "matrix_power"}


@dataclasses.dataclass(frozen=True)
class Difference:
    """kind: "accepted" where PyTorch raises, "refused" where it does not,
    "dtype", "shape" or "values" of a result. dtypes: of the inputs, all if empty.
    case: a part of the case's name. on_some: PyTorch's result changes with the
    processor, and need not differ here."""

    kind: str
    ops: str
    reason: str
    dtypes: tuple = ()
    case: str = ""
    on_some: bool = False

    def covers(self, op, kind, dtype, name):
        return (
            kind == self.kind
            and op in self.ops.split()
            and (not self.dtypes or dtype in self.dtypes)
            and self.case in name
        )


DIFFERENCES = [
    # ---- accepted: more than PyTorch takes
    Difference("accepted", "maximum minimum", "take numbers too", case="number"),
    Difference("accepted", "native_group_norm kron conv3d", "takes any strides"),
    Difference(
        "values",
        "linalg_qr linalg_eigh linalg_svd",
        "vectors of complex matrices have a phase to choose",
        COMPLEX,
    ),
    Difference(
        "values",
        "linalg.cholesky_ex",
        "what is not positive definite has no factor, and NaN for it; PyTorch gives as "
        "much as it came to",
        COMPLEX,
    ),
    Difference(
        "values",
        "logit",
        "limits that have changed places: 1.13's vectors apply the other one first",
        case="eps=0.6",
    ),
    Difference(
        "values",
        "masked.var masked.std",
        "a correction of 1 by default, as in later releases",
        case="{}",
    ),
    Difference(
        "values",
        "special.airy_ai",
        "exact below -2.09, where PyTorch's polynomials lack a coefficient (1e-5)",
        case="97",
    ),
    Difference(
        "accepted",
        "conj fft.ihfft",
        "conj() computes: PyTorch's lazy conjugate has no view_as_real()",
    ),
    Difference(
        "accepted",
        "nn.functional.gelu gelu",
        "PyTorch takes approximate by name only",
        case="tanh",
    ),
    Difference("accepted", "index", "int32 indices", case="int32"),
    Difference(
        "accepted",
        "gather scatter scatter_add scatter_reduce",
        "int32 indices, as in later releases",
        case="int32 index",
    ),
    Difference(
        "accepted",
        "take_along_dim",
        "indices that count from the end, as in later releases",
        case="below 0",
    ),
    Difference(
        "accepted", "index_put", "None stands for a whole dimension, as in x[:, i]"
    ),
    Difference(
        "accepted",
        "index_put",
        "assigned values are converted, as by copy_()",
        case="in place",
    ),
    Difference("accepted", "matrix_rank", "PyTorch has moved it to linalg"),
    Difference(
        "accepted", "addcdiv", "true division of integers", INTEGERS + ("bool",)
    ),
    Difference("accepted", "slice_scatter", "defaults of a later PyTorch"),
    Difference(
        "accepted",
        "nn.functional.pad",
        "circular padding of a plane without channels",
        case="circular",
    ),
    Difference(
        "accepted",
        "nn.functional.fractional_max_pool3d "
        "nn.functional.fractional_max_pool3d_with_indices",
        "PyTorch 1.13 compares the depth's window with the height",
    ),
    Difference(
        "accepted",
        "nn.functional.gaussian_nll_loss nn.functional.hinge_embedding_loss "
        "nn.functional.soft_margin_loss nn.functional.normalize norm "
        "nn.functional.embedding_bag cdist linalg_cdist pdist cov addr",
        "integers are computed as float32",
        INTEGERS + ("bool",),
    ),
    Difference(
        "accepted",
        "nn.functional.embedding_bag",
        "any table of numbers",
        ("bfloat16",) + COMPLEX,
    ),
    Difference(
        "accepted",
        "linalg_pinv linalg.lstsq pinverse linalg.matrix_rank " "linalg.vander",
        "16-bit floats are computed as float32",
        HALVES,
    ),
    Difference(
        "accepted",
        "nn.functional.conv_transpose1d nn.functional.conv_transpose2d "
        "nn.functional.conv_transpose3d",
        "PyTorch 1.13 confuses the channels of bfloat16",
        ("bfloat16",),
        on_some=True,
    ),
    Difference(
        "accepted", "linalg.vecdot linalg.vander", "integers", INTEGERS + ("bool",)
    ),
    Difference("accepted", "einsum", "PyTorch mixes up narrow integers", INTEGERS),
    Difference("accepted", "nansum isposinf isneginf", "complex numbers", COMPLEX),
    Difference("accepted", "gradient", "bytes", ("uint8",)),
    Difference(
        "accepted",
        "threshold nn.functional.threshold",
        "the value -7 wraps, as in full()",
        ("uint8",),
    ),
    Difference(
        "accepted", "isin", "every type of element", ("bool", "bfloat16") + COMPLEX
    ),
    Difference("accepted", "cov", "complex weights", COMPLEX, case="weighted"),
    Difference(
        "accepted",
        "matmul",
        "PyTorch's view_as_real() wants adjacent elements where there are none",
        case="complex",
    ),
    # ---- refused: less than PyTorch takes (beside complex numbers, for which
    # see test_torch_agreement.py)
    Difference(
        "refused",
        "conv2d conv3d nn.functional.conv1d "
        "nn.functional.conv_transpose1d nn.functional.conv_transpose2d "
        "nn.functional.conv_transpose3d",
        "convolutions of integers",
        INTEGERS + ("bool",),
    ),
    Difference(
        "refused",
        "avg_pool2d nn.functional.avg_pool1d "
        "nn.functional.avg_pool3d nn.functional.local_response_norm",
        "the mean of integers is not one",
        ("int64",),
    ),
    Difference(
        "refused",
        "nn.functional.batch_norm",
        "PyTorch checks the type only where there are elements",
        INTEGERS + ("bool",),
        case="[0,",
    ),
    Difference(
        "refused",
        "matmul einsum",
        "PyTorch checks the type only where there are elements",
        ("bool",),
        case="[0,",
    ),
    Difference(
        "refused",
        "view_as_real view_as_complex",
        "there is no complex32",
        ("float16",),
    ),
    # ---- types of results
    Difference(
        "dtype",
        "nn.functional.hinge_embedding_loss",
        "integers are computed as float32",
        INTEGERS,
    ),
    Difference(
        "dtype",
        "addmm addmv baddbmm addbmm addcmul",
        "a factor of 0.5 counts; PyTorch takes it for 0 among integers",
        INTEGERS,
    ),
    Difference(
        "dtype",
        "einsum",
        "einsum() keeps the type; PyTorch calls sum() for some equations",
        INTEGERS + ("bool",),
    ),
    # ---- values
    Difference(
        "values",
        "nn.functional.softshrink",
        "NaN stays, as in later releases of PyTorch",
        case="special",
    ),
    Difference(
        "values",
        "nn.functional.sigmoid",
        "exp(200) overflows to infinity, whose reciprocal is 0",
        ("complex64",),
        case="special",
    ),
    Difference(
        "refused",
        "linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve",
        "symmetric matrices of complex numbers",
        COMPLEX,
    ),
    Difference(
        "refused", "linalg.ldl_solve", "16-bit matrices, empty", HALVES, case="empty"
    ),
    Difference(
        "values",
        "histc",
        "elements within a rounding of an edge; PyTorch 1.13 counts NaN",
    ),
    Difference(
        "values",
        "nn.functional.multi_margin_loss nn.functional.ctc_loss",
        "PyTorch reads weights and targets as if they were contiguous",
        ("float64",),
    ),
    Difference(
        "values",
        "linalg_matrix_exp nn.functional.interpolate "
        "nn.functional.multi_head_attention_forward",
        "PyTorch rounds every step to bfloat16",
        ("bfloat16",),
    ),
    Difference(
        "shape",
        "nn.functional.conv_transpose3d",
        "PyTorch 1.13 confuses the channels of bfloat16",
        ("bfloat16",),
        on_some=True,
    ),
    Difference(
        "values",
        "as_strided_scatter",
        "strides count in a contiguous copy; PyTorch's copy keeps a dense input's",
        ("float64",),
    ),
    Difference(
        "values",
        "matmul dot vdot",
        "complex products of vectors are 0 in Debian's PyTorch",
    ),
    Difference(
        "values",
        "special_function",
        "PyTorch 1.13's j0 has single precision between its zeros",
        case="bessel_j0",
    ),
    Difference(
        "values",
        "cholesky_inverse",
        "PyTorch takes the diagonal for real, as that of a factor is",
        COMPLEX,
    ),
    Difference("shape", "random_state", "16 bytes are enough for Philox"),
    Difference("values", "argsort", "order of equals: always stable"),
    Difference("values", "kthvalue", "which of equals has the index"),
    Difference(
        "values",
        "median",
        "of no integers: 0, PyTorch's smallest",
        ("int32", "int64"),
        case="[0]",
    ),
]
