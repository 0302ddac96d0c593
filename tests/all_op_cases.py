# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Gathers the op cases: a line per family's file."""

import op_cases_activation  # noqa: F401
import op_cases_complex  # noqa: F401
import op_cases_composite  # noqa: F401
import op_cases_conv  # noqa: F401
import op_cases_count  # noqa: F401
import op_cases_ctc  # noqa: F401
import op_cases_edges  # noqa: F401
import op_cases_elementwise  # noqa: F401
import op_cases_embedding  # noqa: F401
import op_cases_fft  # noqa: F401
import op_cases_index  # noqa: F401
import op_cases_inplace  # noqa: F401
import op_cases_linalg  # noqa: F401
import op_cases_linalg_codes  # noqa: F401
import op_cases_linalg_norms  # noqa: F401
import op_cases_linalg_spectral  # noqa: F401
import op_cases_loss  # noqa: F401
import op_cases_neural  # noqa: F401
import op_cases_norm  # noqa: F401
import op_cases_operators  # noqa: F401
import op_cases_pool  # noqa: F401
import op_cases_products  # noqa: F401
import op_cases_random  # noqa: F401
import op_cases_recurrent  # noqa: F401
import op_cases_reduce  # noqa: F401
import op_cases_resample  # noqa: F401
import op_cases_scan  # noqa: F401
import op_cases_shapes  # noqa: F401
import op_cases_sort  # noqa: F401
import op_cases_special  # noqa: F401
import op_cases_statistics  # noqa: F401
import op_cases_views  # noqa: F401
from op_cases import CASES  # noqa: F401
