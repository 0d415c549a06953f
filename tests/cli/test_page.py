"""What the page of a plan shows of the nodes: a line for each of few, squares for many, money, what leaves."""

import re
from pathlib import Path

import pytest

from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import Item, node, pod

LABELS = {
    "node.kubernetes.io/instance-type": "m5.xlarge",
    "topology.kubernetes.io/region": "us-east-1",
    "topology.kubernetes.io/zone": "us-east-1a",
    "nodepool": "web",
}


def nodes(count: int) -> list[Item]:
    return [node(f"node-{number:03}", labels=LABELS) for number in range(count)]


def page(folder: Path, *items: Item) -> str:
    result = trimtab("plan", "--cluster", snapshot(folder, *items), "-o", "html")
    assert result.exit_code == 0, result.output
    return result.stdout


def row(text: str, name: str) -> str:
    [match] = re.findall(rf'<tr data-s="{name} [^>]*>.*?</tr>', text, re.DOTALL)
    return str(match)


def test_each_of_few_nodes_has_a_line_with_its_pool_type_zone_price_and_pods(tmp_path: Path) -> None:
    text = page(tmp_path, *nodes(3), pod("web-0", "node-000"), pod("web-1", "node-000"), pod("web-2", "node-001"))
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row(text, "node-000"))
    assert cells[:5] == ["node-000", "web", "m5.xlarge", "us-east-1a", "$140 a month"]
    assert cells[5].startswith("2")
    assert 'class="squares"' not in text
    assert text.count('tabindex="0"') > 9, "every head of the table sorts"
    assert 'id="search"' in text


def test_a_node_that_goes_is_marked_though_nothing_on_it_asks_for_anything(tmp_path: Path) -> None:
    text = page(tmp_path, *nodes(2), pod("web-0", "node-000", "2"), pod("log-0", "node-001", "", owner="DaemonSet"))
    assert 'class="leaves"' in row(text, "node-001")
    assert "width: 0.0%" in row(text, "node-001"), "its bar is empty: the line itself is coloured"
    assert 'class="leaves"' not in row(text, "node-000")


@pytest.mark.parametrize(("pinned", "pictures"), [(False, 2), (True, 1)])
def test_nodes_after_the_plan_are_drawn_only_where_some_go(tmp_path: Path, pinned: bool, pictures: int) -> None:
    owner = "" if pinned else "ReplicaSet"
    pods = [pod(f"web-{number}", f"node-{number:03}", "100m", owner=owner) for number in range(70)]
    text = page(tmp_path, *nodes(70), *pods)
    assert text.count('class="squares"') == pictures
    assert ("before and after" in text) is not pinned


def test_the_money_of_each_pool_and_what_the_blockers_cost_stand_in_tables(tmp_path: Path) -> None:
    text = page(tmp_path, *nodes(4), *(pod(f"bare-{n}", f"node-00{n}", owner="") for n in range(4)))
    [pools] = re.findall(r'id="pools">.*?</table>', text, re.DOTALL)
    assert re.findall(r"<td[^>]*>(.*?)</td>", pools)[1:5] == ["web", "4", "4", "$561 a month"]
    [blockers] = re.findall(r'id="blockers">.*?</table>', text, re.DOTALL)
    assert "$420 a month" in blockers
    assert "bare-0" in blockers
    assert "Savings against evictions" in page(tmp_path, *nodes(4), *(pod(f"web-{n}", f"node-00{n}") for n in range(4)))
