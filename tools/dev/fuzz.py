# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev fuzz: the targets in tests/fuzz with libFuzzer, under ASan and UBSan.

Clang compiles the few files that a target needs; the rest of the project is
GCC's. New inputs that reach new code are added to the corpus, without the
redundant ones.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from workspace import ROOT, Failure, run, say

FOLDER = ROOT / "tests/fuzz"
CLANG = "clang++-14"
SANITIZERS = "address,undefined"
# What a target needs beside itself; .pb.cc files are generated.
SOURCES = {
    "batch_decoder": [
        "server/transport/batch_decoder.cc",
        "proto/holdfast.pb.cc",
        "proto/admin.pb.cc",
        "proto/stats.pb.cc",
    ],
    "framing": ["server/transport/framing.cc"],
    "shm_ring": ["proto/shm_ring.cc"],
    "state_file": [
        "server/state/state_file.cc",
        "server/state/saved_tensor.cc",
        "server/state/write_steps.cc",
        "proto/convert_spec.cc",
        "ops/dtype.cc",
        "ops/tensor_spec.cc",
        "proto/holdfast.pb.cc",
        "proto/admin.pb.cc",
        "proto/stats.pb.cc",
        "server/state.pb.cc",
    ],
}
PACKAGES = [
    "protobuf",
    "zlib",
    "absl_statusor",
    "absl_cord",
    "absl_strings",
    "absl_flat_hash_map",
    "spdlog",
]


def configure(_name, parser):
    parser.add_argument("target", nargs="?", choices=SOURCES, help="one; else all")
    parser.add_argument(
        "--runs", type=int, default=100_000, help="of each target (default 100,000)"
    )
    parser.add_argument("--keep", action="store_true", help="add to the corpus")
    parser.set_defaults(main=main)


def main(args):
    if shutil.which(CLANG) is None:
        raise Failure(
            f"{CLANG} is missing: apt-get install clang-14 libclang-rt-14-dev"
        )
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        generate(build)
        for target in [args.target] if args.target else SOURCES:
            fuzz(build, target, compile_target(build, target), args)


def generate(build):
    command = ["protoc", "-I.", f"--cpp_out={build}"]
    command += ["proto/holdfast.proto", "proto/admin.proto", "proto/stats.proto"]
    command += ["server/state.proto"]
    run(command, what="generating the protocol's messages", hint="Run ./dev setup.")


def compile_target(build, target):
    program = build / target
    flags = ["-std=c++17", "-O1", "-g1", f"-fsanitize=fuzzer,{SANITIZERS}"]
    flags += ["-fno-sanitize-recover=undefined", f"-I{build}", f"-I{ROOT}"]
    files = [FOLDER / f"{target}_fuzz.cc"]
    for source in SOURCES[target]:
        files.append((build if source.endswith(".pb.cc") else ROOT) / source)
    libraries = subprocess.run(
        ["pkg-config", "--cflags", "--libs", *PACKAGES],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    run(
        [CLANG, *flags, *map(str, files), *libraries, "-o", str(program)],
        what=f"compiling {target}",
        hint="",
    )
    return program


def fuzz(build, target, program, args):
    """Runs it on a copy of its corpus; a finding stays in the repository's root."""
    corpus = FOLDER / "corpus" / target
    grown = build / f"{target}_corpus"
    shutil.copytree(corpus, grown)
    run(
        [
            *(str(program), f"-runs={args.runs}", "-max_len=5000"),
            *("-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={ROOT}/"),
            str(grown),
        ],
        what=f"{target}: {args.runs:,} runs",
        hint=f"The input lies in {ROOT}; add it to {corpus} with the mending.",
    )
    if args.keep:
        merge = [str(program), "-merge=1", "-verbosity=0", str(corpus), str(grown)]
        run(merge, what=f"{target}: growing the corpus", hint="")
        say(f"{target}: {len(os.listdir(corpus))} files")
