# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""OpInfos that the device does not pass, by kind of run, each with the reason in one
sentence. One that passes, all its samples, fails the run: take it off. Those of
ON_SOME_PROCESSORS hang on a last bit, and may pass."""

_SPARSE = "The daemon has no sparse tensors."
_HALF_COMPLEX = "The daemon has no numbers of type ComplexHalf."
_UNSIGNED = "The result is of type UInt64, which the daemon has not."

_SCORES = "Scores of some hundreds are rounded to bfloat16 before softmax."
_BIAS = "A bias of 256 leaves logits in steps of 2, and the last bit decides the loss."

_OF_EVERY_TYPE = {"chalf": _HALF_COMPLEX, "to_sparse": _SPARSE}
_SPARSE_PRODUCTS = {"sparse.sampled_addmm": _SPARSE, "sparse.mm.reduce": _SPARSE}

FAILURES = {
    "float32": {**_OF_EVERY_TYPE, **_SPARSE_PRODUCTS, "hash_tensor": _UNSIGNED},
    "bfloat16": {
        **_OF_EVERY_TYPE,
        "hash_tensor": _UNSIGNED,
        "nn.functional.multi_head_attention_forward": _SCORES,
        "histc": "Elements on a bin's edge fall to its other side than the CPU's.",
        "nn.functional.linear_cross_entropy.chunked": _BIAS,
        "nn.functional.linear_cross_entropy.chunked_none": _BIAS,
        "sparse.mm.reduce": _SPARSE,
    },
    "int64": {**_OF_EVERY_TYPE, "hash_tensor": _UNSIGNED},
    "grad": {**_OF_EVERY_TYPE, **_SPARSE_PRODUCTS},
    "gradgrad": dict(_OF_EVERY_TYPE),
    "errors": {},
}

ON_SOME_PROCESSORS = {
    ("bfloat16", "histc"),
    ("bfloat16", "nn.functional.linear_cross_entropy.chunked"),
    ("bfloat16", "nn.functional.linear_cross_entropy.chunked_none"),
    ("bfloat16", "nn.functional.multi_head_attention_forward"),
}
