"""What newcomers stumbled over stays mended: one test for each such thing that no other test is about."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from docs.pages.reason_codes import product_codes
from tests.cli.doctor.worlds import WELL
from tests.cli.report_runs import run_verb
from tests.docs.test_links import ROOT
from tests.reasons import has_facts
from trimtab.cli.command_tree import iterate_contexts
from trimtab.cli.demo import sample_pool
from trimtab.cli.doctor.command import judge_cluster
from trimtab.cluster.format_count import format_count
from trimtab.diagnosis.observed import DeploymentState
from trimtab.policy.schema import build_crd

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.json"
    path.write_bytes(sample_pool.build_pool_list())
    return path


def test_a_misspelt_flag_of_the_autoscaler_is_named_and_changes_no_answer(pool: Path) -> None:
    wrong = run_verb("plan", "--cluster", pool, "--autoscaler-flags", "--scale-down-utilization-treshold=0.1")
    assert wrong.exit_code == 2
    assert "did you mean --scale-down-utilization-threshold?" in wrong.output


def test_policies_check_reads_a_live_cluster_as_every_other_verb(tmp_path: Path) -> None:
    result = run_verb("policies", "check", "--cluster", "live", "--kubeconfig", tmp_path / "none")
    assert has_facts(result.output, "error", f"stat {tmp_path / 'none'}", "no such file")


def test_the_help_of_the_webhook_says_when_it_reads_the_clusters_policies() -> None:
    text = " ".join(run_verb("webhook", "--help").output.split())
    assert has_facts(text, "recommended policies", "--cluster live", "PodPolicies")


def test_the_demo_names_the_option_by_which_its_numbers_are_made_again(pool: Path) -> None:
    for options, after in (((), "9 nodes → 5"), (("--marked",), "9 nodes → 4")):
        assert run_verb("simulate", "--cluster", pool, "--scheduler", "spread", *options).output.startswith(after)
    picture = (ROOT / "docs/pictures/demo.svg").read_text(encoding="utf-8")
    assert "simulate&#160;--marked" in picture


def test_the_page_about_plans_says_where_a_snapshot_comes_from() -> None:
    page = (ROOT / "docs/how-to/plan-a-pool.md").read_text(encoding="utf-8")
    assert "trimtab capture -O cluster.json.gz" in page
    assert "--hash-names" in page
    assert re.search(r"kubectl get nodes,pods,\S+ -A -o json > cluster\.json", page)


def test_the_readme_needs_no_path_to_the_command() -> None:
    assert ".venv/bin" not in README


def test_two_commands_of_a_clone_do_all_on_a_fresh_machine() -> None:
    """The first block of the README: what it names is what `.ci/run` runs, and no other command tests."""
    blocks = re.findall(r"\n\n((?: {4}[^\n]*\n)+)", README)
    clone, *commands = [line.split(" #")[0].strip() for line in blocks[0].splitlines()]
    assert clone.startswith("git clone ")
    assert commands == ["make demo", "make test"]
    assert set(re.findall(r"\bmake [a-z-]+|pytest", README)) == {*commands}
    steps = re.findall(r"^step (make \S+)", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*commands} <= {*steps}


def test_from_nothing_to_the_first_plan_of_ones_own_cluster_are_two_commands() -> None:
    block = re.search(r"## Install it\n\n((?: {4}[^\n]*\n)+)", README)
    assert block is not None
    commands = [line.split("#")[0].strip() for line in block[1].splitlines()]
    assert commands[:2] == ["pipx install .", "trimtab plan --cluster live"]
    assert len(commands) == 3


@pytest.mark.parametrize(
    "state", [None, DeploymentState(replicas=1, ready_replicas=0), DeploymentState(replicas=0, ready_replicas=0)]
)
def test_no_fix_of_doctor_has_a_placeholder(state: DeploymentState | None) -> None:
    processes = dict.fromkeys(WELL.processes, state)
    fixes = [result.finding.fix for result in judge_cluster(replace(WELL, processes=processes))]
    assert [fix for fix in fixes if re.search(r"\bPROCESS\b", fix)] == []


def test_a_count_of_one_has_a_noun_in_the_singular() -> None:
    assert [format_count(number, "node") for number in (0, 1, 2, 1234)] == [
        "0 nodes",
        "1 node",
        "2 nodes",
        "1,234 nodes",
    ]
    assert format_count(2, "policy", "policies") == "2 policies"


_NOUNS = "nodes|pods|pools|policies|webhooks|owners|groups|evictions|waves|rounds"
_PLAIN_COUNT = re.compile(rf"(?<!of )\0 (?:{_NOUNS})\b")
"""A length, and right after it a noun in the plural; "none of 1 nodes" reads well enough."""
_ALWAYS_MANY = {"trimtab/cli/demo/command.py", "trimtab/cli/demo/sample_pool.py"}
"""Their numbers are those of files that they bring."""


def test_no_sentence_counts_a_length_with_a_noun_that_is_always_plural() -> None:
    results = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted((ROOT / "trimtab").rglob("*.py"))
        if str(path.relative_to(ROOT)) not in _ALWAYS_MANY
        for node in _texts(ast.parse(path.read_text(encoding="utf-8")))
        if _PLAIN_COUNT.search("".join(map(_as_text, node.values)))
    ]
    assert results == []


def _texts(tree: ast.AST) -> Iterator[ast.JoinedStr]:
    """All f-strings, but those that are one of two texts: the other one is for a count of one."""
    chosen = {id(part) for node in ast.walk(tree) if isinstance(node, ast.IfExp) for part in (node.body, node.orelse)}
    return (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) and id(node) not in chosen)


def _as_text(part: ast.expr) -> str:
    """The text of a part of an f-string: a length is a zero byte, any other value is left out."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    value = part.value if isinstance(part, ast.FormattedValue) else part
    is_length = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "len"
    return "\0" if is_length else "…"


def test_kubectl_prints_a_rollout_in_percent_also_where_nobody_wrote_it() -> None:
    [version] = build_crd()["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["rollout"]["default"] == "100%"


def test_help_fits_into_a_terminal_of_80_columns() -> None:
    contexts = [one for one in iterate_contexts(max_content_width=78, terminal_width=78) if one.parent is not None]
    assert len(contexts) > 60
    lines = [line for context in contexts for line in context.get_help().splitlines()]
    assert [line for line in lines if len(line) > 80] == []


def test_the_security_page_promises_no_address_that_is_not_there() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "email" not in text
    assert "git remote get-url origin" in text


def test_an_explained_code_is_explained_offline() -> None:
    for code in ("receives-pods", "not-in-rollout"):
        assert code in {each.name for each in product_codes()}
        assert run_verb("explain", code).output.startswith(f"{code}  (reason)\n")
