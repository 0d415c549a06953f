"""A live cluster's autoscalers are found whatever the names of their statuses are, and a capture has them all."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.recommending import kubeconfig
from tests.cli.snapshots import trimtab
from tests.cluster_of import Item, node, pod
from tests.usage.fake_prometheus import Answer, Asked, serving
from trimtab.cluster.cluster_autoscaler import UPDATED_ANNOTATION, Autoscaler, NodeGroupStatus, format_status
from trimtab.kube.resources import LIST_SOURCES

STATUS_LIST = "/api/v1/namespaces/kube-system/configmaps"
MARK = {UPDATED_ANNOTATION: "2026-01-03T00:00:00Z"}


def config_map(name: str, group: str, annotations: dict[str, str]) -> Item:
    groups = (NodeGroupStatus(name=group, healthy=True, scale_up="NotNeeded", min_size=0),)
    metadata = {"name": name, "namespace": "kube-system", "resourceVersion": "1", "annotations": annotations}
    return {"metadata": metadata, "data": {"status": format_status(Autoscaler(groups=groups))}}


MAPS = [
    config_map("cluster-autoscaler-status", "asg-a", MARK),
    config_map("status-spot", "asg-b", MARK),
    config_map("other", "asg-c", {}),
]


def api(refused: str = "") -> Any:
    items: dict[str, list[Item]] = {"Node": [node("a"), node("b")], "Pod": [pod("web-0", "a", "1")]}
    kinds = {source.list_path: kind for kind, source in LIST_SOURCES.items()}

    def answer(request: Asked) -> Answer:
        path, query = request[0], request[1]
        found = items.get(kinds.get(path, ""), [])
        if path.endswith("/configmaps"):
            if path == refused:
                return 403, {"kind": "Status", "code": 403, "message": "forbidden"}
            named = query.get("fieldSelector", "").rpartition("metadata.name=")[2]
            labelled = "labelSelector" in query
            found = [] if labelled else [one for one in MAPS if named in ("", one["metadata"]["name"])]
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": found}

    return answer


def groups_in(folder: Path, *options: str, refused: str = "") -> list[str]:
    with serving(api(refused)) as server:
        capture = folder / "capture.json"
        result = trimtab("capture", "--kubeconfig", kubeconfig(folder, server.url), *options, "--output-file", capture)
        assert result.exit_code == 0, result.output
    items = json.loads(capture.read_text())["items"]
    return sorted(item["metadata"]["name"] for item in items if item["kind"] == "ConfigMap")


def test_every_marked_status_is_in_a_capture_and_no_other_config_map(tmp_path: Path) -> None:
    assert groups_in(tmp_path) == ["cluster-autoscaler-status", "status-spot"]


def test_without_the_right_to_list_only_the_usual_name_is_read(tmp_path: Path) -> None:
    assert groups_in(tmp_path, refused=STATUS_LIST) == ["cluster-autoscaler-status"]


@pytest.mark.parametrize("option", ["--hash-names"])
def test_the_groups_of_every_status_are_hashed(tmp_path: Path, option: str) -> None:
    groups_in(tmp_path, option)
    assert "asg-b" not in (tmp_path / "capture.json").read_text()
