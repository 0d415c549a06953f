"""The commands of the how-to on requests, run in its order on two weeks of four workloads."""

import json
import os
import sys
from pathlib import Path

from tests.cli.recommending import START
from tests.cli.test_recommend_totals import workload
from tests.cluster_of import Item
from tests.docs.console import Shell, steps

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "size-requests.md"
USE = {
    "shop/cart-0": (0.1, 300),
    "shop/cart-1": (0.1, 300),
    "shop/cart-2": (0.1, 300),
    "shop/till-0": (0.2, 2500),
    "ops/log-0": (0.05, 100),
}
"""Namespace and pod → cores and MiB."""


def world(*items: Item) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_every_command_of_the_page_does_what_is_shown(tmp_path: Path) -> None:
    lines = ["timestamp,namespace,pod,container,cpu,memory"]
    for at in range(START, START + 14 * 86400, 600):
        for name, (cpu, memory) in USE.items():
            namespace, pod = name.split("/")
            lines.append(f"{at},{namespace},{pod},app,{cpu},{memory}Mi")
    (tmp_path / "usage.csv").write_text("\n".join(lines) + "\n")
    cart, till = workload("shop", "cart", pods=3, team="red"), workload("shop", "till", team="blue")
    (tmp_path / "cluster.json").write_text(world(*cart, *till, *workload("ops", "log", team="blue")))
    for pod in cart:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "111m"
    till[0]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "2Gi"
    (tmp_path / "later.json").write_text(world(*cart, *till))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    objects = list(steps(PAGE.read_text()))
    assert len(objects) >= 8
    with Shell(tmp_path, {"PATH": path, "COLUMNS": "160", "NO_COLOR": "1"}) as shell:
        for step in objects:
            shell.do(step)
