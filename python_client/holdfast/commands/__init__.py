# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The subcommands of `holdfast`, a module each.

A module has HELP (one line for `holdfast --help`), a docstring (the description),
add_arguments(parser) and main(args), which returns the exit status. PASSES_ON = True:
everything after the name goes to main unparsed. Modules are imported whenever the
command runs: they import what is heavy inside main.
"""
