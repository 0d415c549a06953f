"""`trimtab pools import`: what it prints, and what is told of a cluster with leftovers of an estafette compactor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from tests.cluster_of import node, pod
from trimtab.cli.main import EXIT_USAGE, cli
from trimtab.cluster.api.core import Node as FormulaNode
from trimtab.cluster.node import node_from_api as node_of
from trimtab.cluster.pool_config import read_pools
from trimtab.cluster.yaml_documents import Document
from trimtab.inputs.import_estafette import STATE_ANNOTATION, OldCompactor, decode_marked_node, old_compactors

SAID = {"nodePools": {"web": {"enabled": True, "scaleDownCPURequestRatioLimit": 0.6}}}


def imported(folder: Path, text: str, *options: str) -> Result:
    file = folder / "estafette.yaml"
    file.write_text(text)
    return CliRunner().invoke(cli, ["pools", "import", str(file), *options])


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_pools_are_printed_as_config_maps_that_are_read_again(tmp_path: Path, form: str) -> None:
    done = imported(tmp_path, json.dumps(SAID), "-o", form, "--system-namespace", "ours")
    assert done.exit_code == 0
    document = yaml.safe_load(done.stdout)
    [manifest] = document["items"] if form == "json" else [document]
    assert manifest["metadata"]["namespace"] == "ours"
    [pool] = read_pools([Document(file="f", index=0, value=manifest)]).pools
    assert (pool.name, pool.under["cpu"], pool.dry_run) == ("web", 60, True)
    assert "Note: " in done.stderr


@pytest.mark.parametrize("text", ["{}", "kind: ConfigMap", '{"nodePools": {"web": 5}}', "a: [", ""])
def test_a_file_without_pools_or_with_a_mistake_is_told_and_nothing_is_printed(tmp_path: Path, text: str) -> None:
    done = imported(tmp_path, text)
    assert done.exit_code == EXIT_USAGE
    assert "estafette.yaml" in done.stderr
    assert not done.stdout


def test_a_plan_reads_what_can_be_imported(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    machine = node("n1", labels={"cloud.google.com/gke-nodepool": "web"})
    cluster.write_text(json.dumps({"kind": "List", "items": [machine, pod("a-1", "n1")]}))
    text = tmp_path / "said.json"
    text.write_text(json.dumps(SAID))
    done = CliRunner().invoke(cli, ["plan", "--cluster", str(cluster), "--pools", str(text), "-o", "json"])
    assert done.exit_code == 0, done.output
    assert "web" in done.stdout


def shape(text: str, cordoned: bool = True, **more: Any) -> FormulaNode:
    described_node = node("n1", cordoned=cordoned, **more)
    described_node["metadata"]["annotations"] = {STATE_ANNOTATION: text}
    return msgspec.convert(described_node, FormulaNode)


MARKS = {
    "drained": ('{"scaleDownInProgress": true}', True, True),
    "marked only": ('{"markedForRemoval": true, "scaleDownInProgress": false}', True, False),
    "open": ('{"scaleDownInProgress": true}', False, False),
    "nonsense": ("{", True, False),
    "another type": ('{"scaleDownInProgress": "yes"}', True, False),
    "empty": ("", True, False),
}


@pytest.mark.parametrize("case", MARKS)
def test_only_a_node_that_it_cordoned_is_opened(case: str) -> None:
    text, cordoned, expected = MARKS[case]
    marked_node = decode_marked_node(node_of(shape(text, cordoned)), "7")
    assert marked_node is not None
    assert marked_node.is_stranded is expected


def test_a_node_without_its_annotation_is_none_of_its() -> None:
    described_node = node("n1", cordoned=True)
    assert decode_marked_node(node_of(msgspec.convert(described_node, FormulaNode)), "7") is None


def deployment(image: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"image": image}]}}
    return {"kind": "Deployment", "metadata": {"name": "x", "namespace": "y"}, "spec": {"template": template, **spec}}


def test_its_deployments_are_told_by_their_image() -> None:
    ours = deployment("r.io/estafette/estafette-k8s-node-compactor:1", selector={"matchLabels": {"b": "1", "a": "2"}})
    other = deployment("r.io/estafette/estafette-k8s-node-compactor-ui:1")
    assert old_compactors([ours, other]) == [OldCompactor("y", "x", 1, (("a", "2"), ("b", "1")))]
