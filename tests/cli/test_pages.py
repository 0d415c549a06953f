"""Every report's HTML page: one layout, nothing from the network, and no serious fault of accessibility."""

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from rich.table import Table
from rich.text import Text

from tests.cli.recommending import usage
from tests.cli.report_pages import NAMES, build_page
from tests.cli.snapshots import half_empty, snapshot, trimtab
from trimtab.cli.page.console_page import PageConsole
from trimtab.cli.page.style import page_style
from trimtab.kube.client import name_cluster


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Report → its HTML."""
    return {name: build_page(name, tmp_path_factory.mktemp("page")) for name in NAMES}


EACH_PAGE = pytest.mark.parametrize("name", NAMES)


@dataclass
class Outline(HTMLParser):
    """The parts of a page that matter for accessibility, and what is wrong with them."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def find_problems(self) -> list[str]:
        """What axe-core calls critical or serious, as far as a parser can see it, and its rules for headings."""
        counts = Counter(tag for tag, _ in self.tags)
        once = [f"{tag}: expected one, got {counts[tag]}" for tag in ("h1", "main") if counts[tag] != 1]
        once += [] if counts["title"] else ["title: missing"]
        ids = Counter(attributes["id"] for _, attributes in self.tags if attributes.get("id"))
        levels = [int(tag[1]) for tag, _ in self.tags if re.fullmatch(r"h[1-6]", tag)]
        labels = Counter(a.get("aria-label") for _, a in self.tags if a.get("role") == "region")
        return [
            *once,
            *(f"id {name}: used {count} times" for name, count in ids.items() if count > 1),
            *(f"h{after} follows h{before}" for before, after in pairwise(levels) if after > before + 1),
            *(f"region {name}: {count} of this name" for name, count in labels.items() if count > 1 or not name),
            *(f"{tag}: has no name" for tag, a in self.tags if a.get("role") == "img" and not a.get("aria-label")),
            *(f"{tag}: has no label" for tag, a in self.tags if tag == "input" and not a.get("aria-label")),
            *("html: has no language" for tag, a in self.tags if tag == "html" and not a.get("lang")),
        ]


@EACH_PAGE
def test_a_page_has_no_serious_fault_of_accessibility(pages: dict[str, str], name: str) -> None:
    outline = Outline()
    outline.feed(pages[name])
    assert outline.find_problems() == []


@EACH_PAGE
def test_a_page_loads_nothing(pages: dict[str, str], name: str) -> None:
    text = pages[name]
    assert """http-equiv="Content-Security-Policy" content="default-src 'none';""" in text
    assert not re.search(r"<(?:link|img|iframe|script)\b[^>]*(?:src|href)=|@import|url\(", text)


@EACH_PAGE
def test_a_page_is_for_phones_for_paper_and_for_the_dark(pages: dict[str, str], name: str) -> None:
    text = pages[name]
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert str(page_style()) in text
    for media in ("(max-width: 640px)", "@media print", "(prefers-color-scheme: dark)"):
        assert media in text


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    whole = colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])
    channels = [int(whole[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "panel"])
@pytest.mark.parametrize("ink", ["ink", "soft", "good", "careful", "bad", "odd"])
def test_text_has_the_contrast_of_wcag_aa(theme: int, ground: str, ink: str) -> None:
    roots = re.findall(r":root \{(.*?)\}", str(page_style()), re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", roots[theme]))
    light, dark = sorted((luminance(colours[ground]), luminance(colours[ink])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_what_a_table_holds_is_text_and_each_cell_has_its_columns_name() -> None:
    console = PageConsole()
    table = Table("Name", "Saves")
    table.add_row(Text("<b>evil</b>", style="green"), "1")
    console.print(table)
    page = console.render_page("trimtab")
    assert '<td data-label="Name"><span class="good">&lt;b&gt;evil&lt;/b&gt;</span></td>' in page
    assert '<th scope="col">Saves</th>' in page


def test_a_page_is_the_same_for_every_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = snapshot(tmp_path, *half_empty())
    wide = trimtab("plan", "--cluster", cluster, "-o", "html").stdout
    monkeypatch.setenv("COLUMNS", "40")
    assert trimtab("plan", "--cluster", cluster, "-o", "html").stdout == wide


@EACH_PAGE
def test_a_page_says_where_it_comes_from_and_how_to_make_it_again(pages: dict[str, str], name: str) -> None:
    [(cluster, at, version, command)] = ORIGIN.findall(pages[name])
    assert cluster.startswith(CLUSTERS.get(name, "Snapshot snapshot-"))
    assert abs((datetime.now(UTC) - datetime.strptime(at, "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)).days) < 1
    assert version == metadata.version("trimtab")
    assert command.startswith(COMMANDS.get(name, f"trimtab {name} --cluster "))
    assert "html" not in command


CLUSTERS = {"replay": "Cluster 0c7f4a1e: 2,016 captures", "report": "Joined from replay.json, plan.json, lint.json"}
COMMANDS = {"replay": "trimtab replay --captures captures", "report": "trimtab report /"}
"""Report → what its page says, for reports that read no snapshot of a cluster."""
ORIGIN = re.compile(r'<p class="soft origin">(.*?)\. Made at (.*?) by trimtab (.*?): <code>(.*?)</code></p>')


@EACH_PAGE
def test_a_page_begins_with_the_answer_and_a_picture_of_the_change(pages: dict[str, str], name: str) -> None:
    headline, rest = re.search(r"<h1>(.*?)</h1>(.*)", pages[name], re.DOTALL).groups()  # type: ignore[union-attr]
    assert re.match(r"\d+ of \d+ (nodes|containers)|.*504\.0", headline)
    assert f"<title>{headline} – trimtab {name}".casefold() in pages[name].casefold()
    first = "facts" if name == "report" else "was"  # the sums of what is joined come first
    assert rest.index(f'class="{first}"') < rest.index("<table")
    assert rest.count('<rect class="was"') == rest.count('<rect class="becomes"') > 0


def test_a_page_of_a_live_cluster_has_the_name_of_its_context(tmp_path: Path) -> None:
    names = ("prod", "test")
    contexts = [{"name": name, "context": {"cluster": name, "user": "operator"}} for name in names]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "contexts": contexts,
        "clusters": [{"name": name, "cluster": {"server": "https://127.0.0.1:1"}} for name in names],
        "users": [{"name": "operator", "user": {}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    assert name_cluster(str(tmp_path / "config")) == "prod"
    assert name_cluster(str(tmp_path / "config"), "test") == "test"


def test_a_page_has_no_value_of_a_header(tmp_path: Path) -> None:
    login = ("--header", "Authorization: Bearer secret-1")
    page = trimtab("recommend", "--usage", usage(tmp_path), *login, "-o", "html").stdout
    assert "secret-1" not in page
    assert "--header" in page


@pytest.mark.parametrize("verb", ["lint -f x.yaml", "doctor", "savings", "idle --cluster x.json", "policies list"])
def test_a_verb_without_a_picture_has_no_page(verb: str) -> None:
    result = trimtab(*verb.split(), "-o", "html")
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_view_without_a_page_refuses_it(tmp_path: Path) -> None:
    result = trimtab("plan", "--cluster", snapshot(tmp_path, *half_empty()), "--for", "cpu=1", "-o", "html")
    assert (result.exit_code, result.stdout) == (2, "")
