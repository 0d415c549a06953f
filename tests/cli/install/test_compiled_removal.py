"""What an uninstallation takes away that acts without any process."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from trimtab.cli.install.command import require_mutating_policies
from trimtab.cli.install.compiled_removal import COMPILED_KINDS, remove_compiled_policies, remove_parameters
from trimtab.inputs.command_faults import RuntimeFailure
from trimtab.installation.names import InstallValues
from trimtab.kube.errors import refusal_of_response
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES
from trimtab.policy.compiled_annotation import POLICY_LABEL


class PlayedCluster:
    """Answers lists by the end of their path, and records what is deleted; what it has not is not found."""

    def __init__(self, **lists: list[dict[str, str]]) -> None:
        self.lists, self.refused, self.deleted = lists, 404, list[str]()
        self.selectors: list[Any] = []

    def get(self, path: str, query: Any = None, *, doing: str, **_: object) -> bytes:
        plural = path.rpartition("/")[2]
        if plural not in self.lists:
            raise refusal_of_response(doing, self.refused, b"{}")
        self.selectors.append(query)
        return json.dumps({"items": [{"metadata": item} for item in self.lists[plural]]}).encode()

    def write(self, method: str, path: str, *_: object, doing: str, **__: object) -> bytes:
        if "validatingadmission" in path and path.split("/")[-2] not in self.lists:
            raise refusal_of_response(doing, 404, b"{}")
        self.deleted.append("/".join(path.split("/")[-2:]))
        return b"{}"


def writer(cluster: PlayedCluster) -> Writer:
    return Writer(client=cluster)  # type: ignore[arg-type]


def test_bindings_go_before_their_policies_and_only_labelled_ones() -> None:
    plurals = (
        "mutatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicies",
    )
    cluster = PlayedCluster(**{plural: [{"name": "trimtab-a"}] for plural in plurals})
    steps = list(remove_compiled_policies(writer(cluster)))
    assert cluster.deleted == [f"{plural}/trimtab-a" for plural in plurals]
    assert {step.how for step in steps} == {"removed"}
    assert cluster.selectors == [{"labelSelector": "trimtab.dev/policy"}] * 4


@pytest.mark.parametrize(("status", "said"), [(404, []), (403, ["the objects cannot be read"] * 4)])
def test_an_api_server_without_the_kind_has_none_and_a_missing_right_is_said(status: int, said: list[str]) -> None:
    cluster = PlayedCluster()
    cluster.refused = status
    assert [step.how.partition(":")[0] for step in remove_compiled_policies(writer(cluster))] == said


def test_parameters_go_from_every_namespace_with_the_right_to_write_them() -> None:
    named = {"name": "trimtab-recommender-parameters", "namespace": "shop"}
    cluster = PlayedCluster(
        configmaps=[{"name": "trimtab-requests", "namespace": "shop"}], rolebindings=[named], roles=[named]
    )
    steps = list(remove_parameters(writer(cluster)))
    assert [step.what for step in steps] == [
        "ConfigMap shop/trimtab-requests",
        "RoleBinding shop/trimtab-recommender-parameters",
        "Role shop/trimtab-recommender-parameters",
    ]


@pytest.mark.parametrize("mode", ["policies", "both"])
def test_an_api_server_before_1_36_is_told_so_before_anything_is_applied(mode: str) -> None:
    # 1.34 and 1.35 serve MutatingAdmissionPolicies as v1beta1 at most: their list of v1 is not found.
    client: Any = PlayedCluster()
    with pytest.raises(RuntimeFailure, match=r"use Kubernetes 1\.36 or later, or --mode webhook"):
        require_mutating_policies(client, InstallValues(mode=mode))
    require_mutating_policies(client, InstallValues(mode="webhook"))
    client.lists["mutatingadmissionpolicies"] = []
    require_mutating_policies(client, InstallValues(mode=mode))


@pytest.mark.parametrize("page", ["deploy/chart/templates/NOTES.txt", "docs/how-to/install-in-a-cluster.md"])
def test_who_uninstalls_with_helm_reads_how_to_remove_every_compiled_kind(page: str) -> None:
    """The hook of the chart may not delete admission policies, so the reader does it."""
    text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    commands = re.findall(rf"kubectl delete (\S+) -l {re.escape(POLICY_LABEL)}\b", text)
    plurals = {LIST_SOURCES[kind].plural for kind in COMPILED_KINDS}
    assert {plural for command in commands for plural in command.split(",")} == plurals
