# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md says what there is."""

import re

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


def test_every_function_has_a_check():
    unchecked = [f["name"] for f, found in ops_page.checks() if not found]
    assert unchecked == [], (
        "functions without a check: give them a case in tests/op_cases_<family>.py, "
        "or a test of their own that ops_page.OWN_TESTS names"
    )


def test_own_tests_are_there():
    for path, names in ops_page.OWN_TESTS.items():
        text = (ops_page.ROOT / path).read_text()
        for name in names.split():
            word = r"\b" + re.escape(name.rsplit(".", 1)[-1]) + r"\b"
            assert re.search(word, text), f"{path} does not mention {name}"
