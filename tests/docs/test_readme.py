"""The first page quotes what the pages with the measurements say, and names files that exist."""

import re

import pytest

from tests.docs.test_links import ROOT
from tests.docs.test_peers import PEERS, SIZING, cells

README = (ROOT / "README.md").read_text(encoding="utf-8")
PLAIN = re.sub(r"(?<=\d)[\s\u202f\u00a0](?=\d)", "", README)


def test_the_cores_freed_are_those_that_were_measured() -> None:
    cores, evictions, _, refused = cells(PEERS, "Trimtab |")
    assert refused == "0"
    most = re.search(r"At most (\d+) cores can be freed", re.sub(r"(?<=\d)[\s\u202f](?=\d)", "", PEERS))
    assert most is not None
    assert f"{cores} of at most {most[1]} cores freed with {evictions} evictions" in PLAIN


def test_the_autoscaler_stands_beside_them() -> None:
    cores, evictions, _, _ = cells(PEERS, "cluster-autoscaler, threshold 1.0")
    assert f"freed {cores} cores with {evictions} evictions" in PLAIN


def test_waste_and_shortage_are_those_that_were_measured() -> None:
    row = cells(SIZING, "held out | adaptive |")
    assert f"{row[1]} of the CPU that the VPA's recommendations waste, and {row[2]} of the time" in README


@pytest.mark.parametrize("peer", ["VPA", "Kyverno", "descheduler", "cluster autoscaler", "Karpenter"])
def test_each_peer_has_its_row(peer: str) -> None:
    assert f"\n| {peer} | " in README


@pytest.mark.parametrize("name", ["demo", "top"])
def test_a_picture_loads_nothing(name: str) -> None:
    picture = (ROOT / f"docs/pictures/{name}.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]+", picture)) == {"http://www.w3.org/2000/svg"}
    assert picture.count("<text") > 10


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SUPPORT.md", "README.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:trimtab|tests|deploy|docs|webhook)/[\w./-]+|\.ci/\w+)`", text)
    missing = [name for name in named if "YOURS" not in name and not (ROOT / name).exists()]
    assert missing == []


def test_make_targets_that_a_page_names_exist() -> None:
    makefiles = "".join(
        (ROOT / name).read_text()
        for name in ("Makefile", "tests/controlplane/Makefile.inc", "tests/bench/Makefile.inc")
    )
    for page in ("README.md", "CONTRIBUTING.md", "deploy/release/README.md"):
        for target in re.findall(r"(?:`| {4})make ([a-z][a-z0-9-]+)", (ROOT / page).read_text()):
            assert re.search(rf"^{target}:", makefiles, re.MULTILINE), f"{page}: make {target}"


TASKS = (
    "add an action",
    "add a reason code",
    "add a lint rule",
    "add a doctor check",
    "change a drain's time-out",
    "change the text of a refusal",
    "add a setting",
    "add a metric",
    "add a verb",
    "add a machine type",
    "change what the HTML pages look like",
    "change when a pool backs off",
)


@pytest.mark.parametrize("task", TASKS)
def test_a_contributor_finds_the_files_and_the_tests_of_a_task_at_the_first_try(task: str) -> None:
    rows = [line.split(" | ") for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()]
    [row] = [row for row in rows if row[0].removeprefix("| ").partition(",")[0] in (task, f"{task} of policies")]
    changed, tested = (re.findall(r"`((?:trimtab|webhook|docs|deploy|tests)/[^`…]+)`", cell) for cell in row[1:3])
    assert tested != []
    assert all((ROOT / name).exists() for name in (*changed, *tested))
    assert changed != [] or "`reasons.py`" in row[1]
