# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The daemon's web page, in a real browser without a screen."""

import getpass
import shutil

import pytest
from daemon_users import new_token

import holdfast
from holdfast.daemon import Daemon

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    selenium = pytest.importorskip(
        "selenium", reason="apt-get install python3-selenium"
    )
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("a browser is missing: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    assert selenium
    options = webdriver.ChromeOptions()
    profile = tmp_path_factory.mktemp("profile")
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(shutil.which("chromedriver"))
    with webdriver.Chrome(service=service, options=options) as driver:
        yield driver


def wait(browser, script, seconds=60):
    """Waits until the script's value is true, and returns it."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, seconds).until(
        lambda driver: driver.execute_script(f"return {script}"), script
    )


def cells(browser, table):
    return browser.execute_script(
        f"return [...document.querySelectorAll('#{table} tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )


def test_the_page_is_alive(browser):
    name = "<img src=x onerror=alert(1)>"
    with Daemon("--http=127.0.0.1:0") as daemon:
        browser.get(f"http://{daemon.http_address}/")
        wait(browser, "document.getElementById('state').textContent.startsWith('up ')")
        assert "holdfastd" in browser.find_element("id", "server").text
        with holdfast.connect(daemon.shm_address, session=name) as session:
            x = holdfast.ones(1 << 20)
            for _ in range(200):
                x = x * 1.0
            holdfast.synchronize()
            # The next refresh shows the session; its name is text and no markup.
            wait(
                browser, "document.querySelectorAll('#sessions tbody tr').length === 1"
            )
            wait(
                browser,
                "document.querySelector('#ops tbody').innerText.includes('mul')",
            )
            (row,) = cells(browser, "sessions")
            assert row[0] == str(session.id) and row[2] == name and row[4] == "shm"
            assert row[1] == getpass.getuser()
            assert float(row[6].split()[0]) >= 4 and row[6].endswith("MiB")
            assert row[-1] == session.trace_id
            assert not browser.find_elements("css selector", "#sessions img")
            (user,) = cells(browser, "users")
            assert user[0] == getpass.getuser() and user[1] == "1"
            assert browser.find_element("id", "capacity").text.startswith("of ")
            # Axes end at round numbers: a minute, a power of two.
            ticks = "Chart.getChart('memory').scales.{}.ticks.map(tick => tick.label)"
            wait(browser, f"{ticks.format('x')}[0].endsWith(' min')")
            steps = browser.execute_script(f"return {ticks.format('y')}")
            assert all(step == "0 B" or ".0 " in step for step in steps), steps
            # The memory is in the chart, and drawn.
            chart = "Chart.getChart('memory').data.datasets[0].data"
            wait(browser, f"{chart}.some(point => point.y >= 4)")
            drawn = (
                "(canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width,"
                " canvas.height).data.some(byte => byte !== 0))"
                "(document.getElementById('memory'))"
            )
            assert browser.execute_script(f"return {drawn}")
        wait(browser, "document.querySelectorAll('#sessions tbody tr').length === 0")
    wait(browser, "document.getElementById('state').className === 'gone'")
    # All that the browser found fault with is that the daemon is gone.
    faults = [
        entry["message"]
        for entry in browser.get_log("browser")
        if "ERR_CONNECTION_REFUSED" not in entry["message"]
    ]
    assert not faults


def test_a_click_on_a_head_sorts(browser):
    with Daemon("--http=127.0.0.1:0") as daemon:
        browser.get(f"http://{daemon.http_address}/")
        first = holdfast.connect(daemon.shm_address, session="b", default=False)
        with first, holdfast.connect(daemon.shm_address, session="a", default=False):
            names = (
                "[...document.querySelectorAll('#sessions tbody tr')]"
                ".map(row => row.cells[2].textContent).join('')"
            )
            wait(browser, f"{names}.length === 2")
            by_id, _, by_name = browser.find_elements(
                "css selector", "#sessions th button"
            )[:3]
            by_name.click()
            wait(browser, f"{names} === 'ab'")
            # Numbers come largest first, the next looks too; a second click turns it.
            by_id.click()
            wait(browser, f"{names} === 'ab'")
            by_id.click()
            wait(browser, f"{names} === 'ba'")
            last = "document.getElementById('state').textContent"
            text = browser.execute_script(f"return {last}")
            wait(browser, f"{last} !== {text!r}")
            assert browser.execute_script(f"return {names}") == "ba"


def test_a_token_shows_more(browser, tmp_path):
    tokens = tmp_path / "tokens"
    boss = new_token(tokens, "boss", "--admin")
    with Daemon("--http=127.0.0.1:0", f"--token_file={tokens}") as daemon:
        with holdfast.connect(daemon.shm_address, default=False):
            browser.get(f"http://{daemon.http_address}/")
            rows = "document.querySelectorAll('#sessions tbody tr').length"
            wait(browser, "!document.getElementById('identify').hidden")
            assert browser.execute_script(f"return {rows}") == 0
            browser.find_element("id", "token").send_keys(boss)
            browser.find_element("css selector", "#identify button").click()
            wait(browser, f"{rows} === 1")
            assert cells(browser, "sessions")[0][1] == getpass.getuser()
            wait(browser, "document.getElementById('identify').hidden")
