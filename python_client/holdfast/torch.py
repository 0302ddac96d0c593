# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""In notebooks: `%load_ext holdfast.torch`. From then on `import torch` is Holdfast, as
under `holdfast run`, and `%holdfast` is there.

It must come before anything imports PyTorch; what cannot be taken back says so.
"""

from holdfast import notebook, run


def load_ipython_extension(ipython):
    """For %load_ext holdfast.torch."""
    run.stand_in_for_torch()
    notebook.load_ipython_extension(ipython)
