"""Every policy that the documentation prints is a policy."""

import re
from pathlib import Path

import pytest

from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Actions

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-policy.md"
SNIPPETS = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[str(number) for number in range(len(SNIPPETS))])
def test_a_snippet_loads_without_mistakes(snippet: str) -> None:
    loaded = load_policies([(PAGE.name, snippet.encode())])
    assert loaded.mistakes == ()
    assert len(loaded.policies.all) == 1


def test_one_snippet_shows_every_action() -> None:
    snippets = [load_policies([("page", s.encode())]).policies.all[0].spec.actions for s in SNIPPETS]
    missing = min(([n for n in Actions.__slots__ if getattr(one, n) is None] for one in snippets), key=len)
    assert missing == [], f"add them to the snippet 'Every action once' in {PAGE}"


def match_rows() -> list[tuple[str, str]]:
    return re.findall(r"^\| `(\w+)`[^|]*\| `([^`]*)`", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("field", "example"), [row for row in match_rows() if row[0] != "exclude"])
def test_a_row_of_the_table_of_match_is_what_the_loader_takes(field: str, example: str) -> None:
    head = "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: p}\n"
    text = f"{head}spec:\n  match:\n    {field}: {example}\n  actions: {{limits: {{cpu: remove}}}}\n"
    assert load_policies([("row", text.encode())]).mistakes == ()
