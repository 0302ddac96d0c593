# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`python -m holdfast`: the same as the holdfast command."""

import sys

from holdfast.cli import main

sys.exit(main())
