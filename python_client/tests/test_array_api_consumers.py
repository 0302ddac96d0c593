# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What takes arrays of any library, on our tensors: SciPy, scikit-learn, and the
standard's own suite. Skipped where a version that has it is not installed.

ARRAY_API_TESTS is the folder of a clone of data-apis/array-api-tests, with its
submodule. SciPy reads SCIPY_ARRAY_API when it is imported, so programs are run.
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from array_api_failures import FAILURES, MAY_FAIL

SCIPY = {
    "special.logsumexp": "special.logsumexp(x, axis=0)",
    "stats.zscore": "stats.zscore(x)",
    "stats.ttest_1samp": "stats.ttest_1samp(x, 0.1).pvalue",
    "fft.dct": "fft.dct(x, axis=0)",
    "signal.hilbert": "signal.hilbert(x, axis=0)",
    "cluster.vq.whiten": "cluster.vq.whiten(x)",
}
SKLEARN = {
    "StandardScaler": "preprocessing.StandardScaler().fit(x).transform(x)",
    "PCA": "decomposition.PCA(2, svd_solver='full').fit(x).explained_variance_",
    "Ridge": "linear_model.Ridge(solver='svd').fit(x, x[:, 0]).predict(x)",
    "GaussianNB": "naive_bayes.GaussianNB().fit(x, y).predict_proba(x)",
    "LDA": "discriminant_analysis.LinearDiscriminantAnalysis().fit(x, y).predict(x)",
    "rbf_kernel": "metrics.pairwise.rbf_kernel(x, x)",
}
# Both libraries with NumPy's array and our tensor: the results are equal, and ours are
# tensors.
PROGRAM = """
import contextlib, sys
import numpy
import holdfast
expressions, dispatch = eval(sys.argv[1]), contextlib.nullcontext
if sys.argv[2] == "scipy":
    from scipy import cluster, fft, signal, special, stats
else:
    import sklearn
    from sklearn import decomposition, discriminant_analysis, linear_model, metrics
    from sklearn import naive_bayes, preprocessing
    dispatch = lambda: sklearn.config_context(array_api_dispatch=True)
data = numpy.random.default_rng(0).normal(size=(40, 3))
labels = (data[:, 0] > 0.2).astype(numpy.int64)
for name, expression in expressions.items():
    code = compile(expression, name, "eval")
    want = eval(code, globals(), {"x": data, "y": labels})
    x, y = holdfast.tensor(data), holdfast.tensor(labels)
    with dispatch():
        got = eval(code, globals(), {"x": x, "y": y})
    assert type(got) is holdfast.Tensor, (name, type(got))
    numpy.testing.assert_allclose(got.numpy(), want, rtol=1e-6, err_msg=name)
    print("same", name)
"""


def run_program(daemon, transport, library, expressions):
    environment = {
        **os.environ,
        "HOLDFAST_ADDRESS": daemon.address(transport),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SCIPY_ARRAY_API": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, repr(expressions), library],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[1::2] == list(expressions)


def test_scipy(daemon, transport):
    pytest.importorskip("scipy", minversion="1.15")
    run_program(daemon, transport, "scipy", SCIPY)


def test_sklearn(daemon, transport):
    pytest.importorskip("sklearn", minversion="1.6")
    run_program(daemon, transport, "sklearn", SKLEARN)


def test_the_standards_suite(daemon, tmp_path):
    """No test fails that is not listed; a listed one that begins to pass fails here."""
    suite = os.environ.get("ARRAY_API_TESTS")
    if not suite:
        pytest.skip("ARRAY_API_TESTS names no clone of array-api-tests")
    report = tmp_path / "report.xml"
    examples = os.environ.get("HOLDFAST_PROPERTY_EXAMPLES", "10")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--max-examples", examples, "--disable-deadline"]
    command += ["--hypothesis-derandomize", f"--junitxml={report}", "array_api_tests"]
    environment = {
        **os.environ,
        "HOLDFAST_ADDRESS": daemon.address("shm"),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "ARRAY_API_TESTS_MODULE": "holdfast.array_api",
        "ARRAY_API_TESTS_VERSION": "2025.12",
    }
    done = subprocess.run(
        command, cwd=suite, env=environment, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stdout[-4000:] + done.stderr
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    assert len(cases) > 1300
    failed = {c.get("name") for c in cases if c.find("failure") is not None}
    assert failed - MAY_FAIL == FAILURES
