"""The page of a plan in a real browser: it loads nothing, its script sorts and searches, it fits a telephone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from tests.cli.report_pages import NAMES, build_page
from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import SAFE, Item, node, pod
from tests.e2e.browser import Browser, installed

pytestmark = pytest.mark.skipif(installed() is None, reason="no browser is here: install chromium-headless-shell")

LABELS = {"node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "us-east-1"}


def cluster(count: int, period: int = 5) -> list[Item]:
    """Two pools; one pod of each `period` must not move, every node has at most one pod."""
    nodes = [node(f"node-{n:04}", labels={**LABELS, "nodepool": "ab"[n % 2]}) for n in range(count)]
    holding = {"annotations": {SAFE: "false"}}
    pods = [
        pod(f"web-{n}", f"node-{n:04}", f"{100 + n % 7 * 100}m", **(holding if n % period == 0 else {}))
        for n in range(count)
    ]
    return [*nodes, *pods]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def opened(browser: Browser, folder: Path, items: list[Item], verb: str = "plan", width: int = 1280) -> Browser:
    page = folder / "page.html"
    result = trimtab(verb, "--cluster", snapshot(folder, *items), "-o", "html", "--output-file", page)
    assert result.exit_code == 0, result.output
    browser.asked.clear()
    browser.errors.clear()
    browser.open(page, width)
    return browser


@pytest.mark.parametrize("verb", ["plan", "simulate"])
def test_it_asks_for_nothing_and_breaks_nothing(browser: Browser, tmp_path: Path, verb: str) -> None:
    opened(browser, tmp_path, cluster(20), verb)
    assert [address.partition(":")[0] for address in browser.asked] == ["file"]
    assert browser.errors == []


def test_a_name_that_is_a_script_is_a_name(browser: Browser, tmp_path: Path) -> None:
    evil = "<img src=x onerror=document.title='taken'>"
    opened(browser, tmp_path, [*cluster(4), node(evil, labels={"nodepool": evil})])
    assert browser.run("document.title").endswith("– trimtab plan")
    assert evil in browser.run("document.body.textContent")


def test_few_nodes_have_a_line_each(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, cluster(50))
    assert browser.run("document.querySelectorAll('#nodes tbody tr').length") == 50
    assert browser.run("document.querySelectorAll('.squares i').length") == 0
    cells = "[...document.querySelector('#nodes tbody tr').cells].map(cell => cell.textContent)"
    name, pool, kind, _, price, *_ = browser.run(cells)
    assert (name[:5], pool, kind, price) == ("node-", "a", "m5.xlarge", "$140 a month")


def test_many_nodes_are_squares_in_pools(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, cluster(1000))
    counts = "[...document.querySelectorAll('.pool')].map(pool => pool.querySelectorAll('.squares i').length)"
    assert browser.run(counts) == [1000, 1000]  # 500 nodes each, before and after
    square = "document.querySelector('.squares i').getBoundingClientRect()"
    assert 8 <= browser.run(f"{square}.width") <= 20


def test_a_click_on_a_head_sorts_and_another_turns_it(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, cluster(20))
    column = "[...document.querySelectorAll('#nodes tbody tr')].map(row => Number(row.cells[6].dataset.v))"
    browser.run("document.querySelectorAll('#nodes th')[6].click()")
    up = browser.run(column)
    browser.run("document.querySelectorAll('#nodes th')[6].click()")
    assert up == sorted(up)
    assert browser.run(column) == sorted(up, reverse=True)


def test_the_search_leaves_what_has_all_words(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, cluster(50))
    browser.run("search.value = 'NODE-001 stays'; search.dispatchEvent(new Event('input'))")
    shown = "[...document.querySelectorAll('#nodes tbody tr:not(.out)')].map(row => row.cells[0].textContent)"
    process = browser.run(shown)
    assert process
    assert all(name.startswith("node-001") for name in process)


def test_what_keeps_nodes_is_priced_dearest_first(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, cluster(20, period=2))
    costs = browser.run(
        "[...document.querySelectorAll('#blockers tbody tr')].map(row => Number(row.cells[0].dataset.v))"
    )
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 0


def test_it_fits_a_telephone(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, cluster(100), width=400)
    assert browser.run("document.documentElement.scrollWidth") <= 400


@pytest.mark.parametrize("verb", ["plan", "simulate"])
def test_no_page_is_wider_than_its_window(browser: Browser, tmp_path: Path, verb: str) -> None:
    page = tmp_path / "page.html"
    cluster_file = snapshot(tmp_path, *cluster(20))
    assert trimtab(verb, "--cluster", cluster_file, "-o", "html", "--output-file", page).exit_code == 0
    for width in (400, 900, 1280):
        browser.open(page, width)
        assert browser.run("document.documentElement.scrollWidth") <= width


RULES_OF_AXE = """axe.run(document, {resultTypes: ["violations"]}).then(found => JSON.stringify(
    found.violations.flatMap(rule => rule.nodes.map(node => `${rule.impact} ${rule.id}: ${node.html}`))))"""


def find_violations(browser: Browser, html: str, folder: Path, width: int, scheme: str) -> list[str]:
    """What axe-core finds on the page in a window of this width, in light or dark."""
    page = folder / "page.html"
    page.write_text(html, encoding="utf-8")
    browser.prefer(scheme)
    browser.open(page, width)
    browser.run((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8") + ";0")
    assert browser.run("document.documentElement.scrollWidth") <= width
    violations: list[str] = json.loads(browser.run(RULES_OF_AXE))
    return violations


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_no_fault_of_accessibility(browser: Browser, tmp_path: Path, name: str) -> None:
    html = build_page(name, tmp_path)
    faults = [
        fault
        for scheme in ("light", "dark")
        for width in (400, 900, 1280)
        for fault in find_violations(browser, html, tmp_path, width, scheme)
    ]
    assert faults == []


def test_axe_finds_a_fault_that_is_there(browser: Browser, tmp_path: Path) -> None:
    html = build_page("plan", tmp_path).replace("<main", '<img src="data:," ><main')
    assert [fault.split(":")[0] for fault in find_violations(browser, html, tmp_path, 900, "light")][:1] == [
        "critical image-alt"
    ]


SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll("svg text")].map(text => {
    const box = text.ownerSVGElement; return 12 * box.getBoundingClientRect().width / box.viewBox.baseVal.width; }))"""


@pytest.mark.parametrize("name", ["replay", "report"])
def test_a_page_for_others_is_read_on_a_phone_and_on_paper(browser: Browser, tmp_path: Path, name: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(build_page(name, tmp_path), encoding="utf-8")
    for width, is_paper in ((400, False), (720, True), (1280, False)):
        browser.look_like_paper(is_paper)
        browser.open(page, width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(SMALLEST_TEXT) >= 9
    browser.look_like_paper(False)
    assert find_violations(browser, page.read_text(), tmp_path, 400, "dark") == []
