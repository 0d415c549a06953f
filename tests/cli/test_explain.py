"""`trimtab explain` knows every name that Trimtab prints, without a cluster."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deploy.observe import rules
from tests.reasons import has_facts
from trimtab.cli.catalog import CatalogEntry, find_children, find_entries, load_catalog, suggest_entries
from trimtab.cli.main import cli


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *arguments])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("webhook-not-registered", "What to do: Install Trimtab (`trimtab install`)"),
        ("TRIMTAB_NAMESPACE", "Default: trimtab-system"),
        ("trimtab_namespace", "Trimtab's own namespace"),
        ("L35", "What to do: Remove the cpu limit"),
        ("pace.drains", "Default: 1"),
        ("pool.pace.drains", "pool field"),
        ("spec.rollout", "policy field"),
        ("rollout", "policy field"),
        ("podpolicy.spec.rollout", "policy field"),
        ("spec.actions", "spec.actions.requests  <object>"),
        ("requests.cpu", "spec.actions.requests.cpu"),
        ("match.requests.atLeast", "The amount is this or more."),
        ("requests.cpu.min", "The smallest request that the policy sets."),
        ("kubernetes-version", "Is this Kubernetes supported?"),
        ("underUsed.memory", "percent of allocatable"),
        ("TrimtabResizesReverted", "`resize-oom-kill`, `resize-restarted`"),
        ("trimtab.dev/drain-candidate", "Where: on nodes"),
        ("drain-candidate", "no pod is rejected"),
        ("trimtab.dev/cordoned-for", "What to do: `trimtab why node NODE` shows it"),
        ("trimtab_reviews_total", "Type: counter by path, code, in reviews"),
        ("trimtab_review_duration_seconds_bucket", "Exported by trimtab webhook."),
        ("trimtab_build_info", "Exported by trimtab webhook, "),
        ("TrimtabCertificateExpires", "See certificates (docs/how-to/firewalls-and-certificates.md#certificates)."),
        ("commitments", "instance type: nodes of it that are paid for"),
    ],
)
def test_a_name_is_explained(name: str, text: str) -> None:
    result = explain(name)
    # Long lines are wrapped at the width of the terminal.
    is_explained = " ".join(text.split()) in " ".join(result.output.split())
    assert (result.exit_code, is_explained) == (0, True), result.output


def test_every_unknown_name_is_answered_with_names_that_resemble_it() -> None:
    result = explain("webhook-not-registred", "TRIMTAB_NAMESPCE", "zzzzz")
    assert result.exit_code == 2
    assert "did you mean webhook-not-registered" in result.stderr
    assert "did you mean TRIMTAB_NAMESPACE" in result.stderr
    assert "did you mean trimtab.dev/drain-candidate" in explain("drain-candidat").stderr
    assert "did you mean trimtab_reviews_total" in explain("trimtab_review_total").stderr
    assert has_facts(result.stderr, "got 'zzzzz'", "for a policy", "trimtab policies explain")


def test_the_report_has_the_same_facts() -> None:
    (explanation,) = json.loads(explain("spec.actions.requests", "-o", "json").stdout)["explanations"]
    assert explanation["kind"] == "policy field"
    assert {"spec.actions.requests.cpu", "spec.actions.requests.memory"} <= {
        field["name"] for field in explanation["fields"]
    }


def test_the_catalog_has_every_kind_and_each_name_once_in_its_kind() -> None:
    catalog = load_catalog()
    assert {entry.kind for entry in catalog} == {
        "reason",
        "rule",
        "check",
        "alert",
        "setting",
        "policy field",
        "pool field",
        "DrainOrder field",
        "annotation",
        "label",
        "taint",
        "metric",
        "word",
        "column",
        "report field",
    }
    assert len({(entry.kind, entry.name) for entry in catalog}) == len(catalog)
    assert all(find_entries(catalog, entry.name) for entry in catalog)


def test_fields_inside_of_lists_are_found() -> None:
    outer, inner, deeper = (
        CatalogEntry(kind="policy field", name=name, means="", page="")
        for name in ("spec.a", "spec.a[].b", "spec.a[].b.c")
    )
    assert find_children((outer, inner, deeper), outer) == [inner]
    assert find_entries((outer, inner, deeper), "a.b") == [inner]
    assert suggest_entries((outer, inner, deeper), "spec.a.bb")[0] == "spec.a[].b"


def test_explain_imports_no_decision_and_no_client() -> None:
    program = (
        "import sys; from trimtab.cli.explain import command; command.build_explanations_report(('L35',));"
        "print(*[name for name in ('trimtab.policy', 'trimtab.kube', 'kubernetes', 'trimtab.admission')"
        " if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


def test_every_alert_is_explained() -> None:
    alerts = {rule.name for rule in rules.everything() if rule.alert}
    assert alerts == {entry.name for entry in load_catalog() if entry.kind == "alert"}
    assert all(entry.todo for entry in load_catalog() if entry.kind == "alert")


def test_what_to_check_and_what_to_do_about_an_alert_are_lines_of_their_own() -> None:
    lines = explain("TrimtabCertificateExpires").output.splitlines()
    assert [line for line in lines if line.startswith("Check: `trimtab certs status")]
    assert [line for line in lines if line.startswith("Then: ")]


def test_no_text_has_markdown_that_a_terminal_does_not_render() -> None:
    """Backticks are not among it: they set commands and values apart."""
    texts = [text for entry in load_catalog() for text in (entry.means, entry.todo, entry.value)]
    assert [text for text in texts if re.search(r"\*\*|\]\(|^#+ ", text)] == []


COMMAND = re.compile(
    r"\b(?:kubectl|helm) (?:get|delete|annotate|apply|-n|scale|label|uncordon)|\btrimtab (?:why|doctor|plan|certs)\b"
)


def test_every_command_in_a_text_is_set_apart() -> None:
    catalog = load_catalog()
    bare = [re.sub(r"`[^`]*`", "", text) for entry in catalog for text in (entry.means, entry.todo)]
    assert [text for text in bare if COMMAND.search(text)] == []


def test_every_page_in_brackets_exists() -> None:
    pages = [page for entry in load_catalog() for page in re.findall(r"\((docs/[^)]+\.md)\)", entry.todo + entry.means)]
    assert pages
    assert [page for page in pages if not (Path(__file__).parents[2] / page).is_file()] == []


NO_MARKS = {"compactor", "watchdog", "schemas", "v", "burstable-by-default"}
"""Words after `trimtab.dev/` that are no keys of objects: reporters of Events, addresses, the API's version."""


def test_every_annotation_label_and_taint_in_the_source_is_explained() -> None:
    root = Path(__file__).parents[2]
    sources = [path.read_text() for package in ("trimtab", "webhook") for path in (root / package).rglob("*.py")]
    keys = {
        key
        for text in sources
        for key in re.findall(r"(?<![.\w])trimtab\.dev/([a-z][a-z-]*[a-z]|v)(?=[\"`: =,])", text)
    }
    explained = {entry.name.removeprefix("trimtab.dev/") for entry in load_catalog()}
    assert keys - explained - NO_MARKS == set()
