# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md says what there is."""

import ops_page

from holdfast import reference


def test_the_page_is_current():
    assert (
        ops_page.PAGE.read_text() == ops_page.page()
    ), "docs/ops.md is out of date: ./dev python tests/ops_page.py"


def test_three_hundred_functions_with_a_doc_each():
    functions = reference.functions()
    assert len({f["name"] for f in functions}) == len(functions) >= 300
    assert [f["name"] for f in functions if not f["doc"] or not f["signature"]] == []
