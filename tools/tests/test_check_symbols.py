# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

import subprocess

import check_symbols
import pytest

ENTRY = "int holdfast_device_plugin() { return 0; }"
OURS = "int _ZN8holdfast4CopyEv()"
ABSL = "int _ZN4absl7debian36StatusEv()"


@pytest.fixture
def compiled(tmp_path):
    """Returns a function that makes a shared library of C, which stands for the
    daemon too."""

    def compile_c(name, *lines):
        source, library = tmp_path / f"{name}.c", tmp_path / f"{name}.so"
        source.write_text("\n".join(lines))
        command = ["cc", "-shared", "-fPIC", "-w", "-o", library, source]
        subprocess.run(command, check=True)
        return library

    return compile_c


def test_a_library_that_shares_nothing_but_abseil(compiled, capsys):
    daemon = compiled("daemon", ABSL + "{ return 0; }")
    calls = f"int puts(const char*); {ABSL}; int _(void) {{ return 0; }}"
    library = compiled("lib", ENTRY, calls.replace("int _", "static int f"))
    assert check_symbols.main([daemon, library]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "in_daemon, in_library, fault",
    [
        (OURS + "{ return 0; }", "", "the daemon exports _ZN8holdfast4CopyEv"),
        ("", OURS + "{ return 0; }", "it exports _ZN8holdfast4CopyEv"),
        ("", f"__attribute__((weak)) {OURS} {{ return 0; }}", "it exports _ZN8"),
        ("", "int other() { return 0; }", "it exports other"),
        ("", f"{OURS}; static int (*f)() = _ZN8holdfast4CopyEv; int (**g)() = &f;", ""),
        (
            "int helper() { return 0; }",
            "int helper(); static int f() { return helper(); } "
            "__attribute__((constructor)) static void g() { f(); }",
            "it imports helper, which the daemon exports",
        ),
        (
            "",
            f"{OURS}; __attribute__((constructor)) static void g() "
            "{ _ZN8holdfast4CopyEv(); }",
            "it imports _ZN8holdfast4CopyEv",
        ),
        (
            "",
            "__attribute__((used)) static int _ZN8holdfast5GetOpENS_4OpIdE() "
            "{ return 0; }",
            "a table of ops of its own",
        ),
    ],
)
def test_what_is_shared_is_found(compiled, capsys, in_daemon, in_library, fault):
    daemon = compiled("daemon", in_daemon)
    library = compiled("lib", ENTRY, in_library)
    assert check_symbols.main([daemon, library]) == 1
    assert fault in capsys.readouterr().out


def test_a_library_without_an_entry(compiled, capsys):
    nothing = compiled("daemon", "")
    assert check_symbols.main([nothing, nothing]) == 1
    assert "it does not export holdfast_device_plugin" in capsys.readouterr().out
