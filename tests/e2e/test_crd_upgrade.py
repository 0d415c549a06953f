"""An earlier CustomResourceDefinition becomes today's by the documented command, and no policy is lost."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.e2e.charts import ROOT
from tests.e2e.installed import vacated
from trimtab.policy.schema import build_crd

GUIDE = ROOT / "docs/reference/supported.md"
NAME = "podpolicies.trimtab.dev"
LATER = "rollout"
"""A field that the earlier definition does not know."""


def earlier() -> dict[str, Any]:
    """Without a field, without columns for people, and nothing said of our policy's status."""
    schema = copy.deepcopy(build_crd())
    [version] = schema["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop(LATER)
    version.pop("additionalPrinterColumns", None)
    return schema


@pytest.fixture
def before(cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with the earlier one, as Helm or kubectl once created it."""
    vacated(cluster)
    cluster.kubectl("delete", "crd", NAME, "--ignore-not-found", "--wait")
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(earlier()))
    cluster.kubectl("create", "-f", str(tmp_path / "crd.yaml"))
    cluster.eventually(lambda: cluster.kubectl("get", "podpolicies") is not None, what="policies served")
    yield cluster
    cluster.kubectl("delete", "crd", NAME, "--wait")


def test_the_documented_command_upgrades_it_and_policies_stay(before: Cluster, tmp_path: Path) -> None:
    policy = {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PodPolicy",
        "metadata": {"name": "kept"},
        "spec": {"mode": "audit", "actions": {"limits": {"cpu": "remove"}}},
    }
    before.kubectl("create", "-f", "-", stdin=yaml.safe_dump(policy))
    [command] = re.findall(r"^    kubectl (apply .*crd\.yaml)$", GUIDE.read_text(), re.MULTILINE)
    before.kubectl(*command.replace("deploy/crd.yaml", str(ROOT / "deploy/crd.yaml")).split())
    stored = before.get("CustomResourceDefinition", NAME)
    assert stored["spec"]["versions"][0]["schema"] == build_crd()["spec"]["versions"][0]["schema"]
    assert stored["status"]["storedVersions"] == ["v1alpha1"]
    spec = before.get("PodPolicy", "kept")["spec"]
    assert (spec["mode"], spec["actions"]["limits"]["cpu"]) == ("audit", "remove")

    def refused() -> bool:
        """The server knows the field now: nonsense in it is refused."""
        nonsense = {**policy, "metadata": {"name": "new"}, "spec": {**policy["spec"], LATER: ["x"]}}
        try:
            before.kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(nonsense))
        except AssertionError as error:
            return LATER in str(error)
        return False

    before.eventually(refused, what="the new schema in force")
