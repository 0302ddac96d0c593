# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What packages forbid a device that they do not know, worked around: a module for each
package, loaded on demand. Nothing here runs unless it is imported and called.

    from holdfast_torch.integrations import accelerate
    accelerate.install()
"""
