"""Writes `rule_cases/CODE/captured.json`: the objects of each rule's bad manifest as a real API server stores them.

    python -m tests.autoscaling.capture_objects [CODE…]

The good manifest is used where the API server refuses the bad one (`of` in the file says which), and where it refuses
that too, the good one with its minimum of replicas left out. What differs from run
to run is removed: uids, versions, managed fields. Run by hand, in seconds once the
binaries of the control plane are built; the files are committed.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.autoscaling.rule_cases_of import CODES, FOLDER
from tests.controlplane import binaries
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e import vpa

CRD = Path(__file__).parents[2] / "deploy" / "crd.yaml"
NO_API_OBJECT = ("KubeletConfiguration",)
"""Kinds of files, which no API server stores; kubeadm keeps them in a ConfigMap."""
VOLATILE = ("uid", "resourceVersion", "managedFields", "generation", "selfLink")


def main(codes: list[str]) -> None:
    with ControlPlane.start(binaries.find()) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane)
        for definition in (vpa.definition(), buffer_definition(), *yaml.safe_load_all(CRD.read_text())):
            cluster.apply(definition)
        for plural in ("VerticalPodAutoscaler", "CapacityBuffer", "PodPolicy"):
            cluster.eventually(lambda kind=plural: cluster.list(kind, everywhere=True) is not None, what=plural)
        for code in codes or CODES:
            capture_case(cluster, code)


def buffer_definition() -> dict[str, Any]:
    names = {"plural": "capacitybuffers", "singular": "capacitybuffer", "kind": "CapacityBuffer"}
    definition = vpa.definition()
    [version] = definition["spec"]["versions"]
    group = "autoscaling.x-k8s.io"
    definition["metadata"]["name"] = f"capacitybuffers.{group}"
    definition["spec"] = {
        **definition["spec"],
        "group": group,
        "names": names,
        "versions": [{**version, "name": "v1beta1"}],
    }
    return definition


def capture_case(cluster: Cluster, code: str) -> None:
    """Write what the API server stores of the bad manifest, or of the good one if it refuses the bad one."""
    refused = ""
    for name in ("bad", "good", "awake"):
        documents = list(yaml.safe_load_all((FOLDER / code / f"{name.replace('awake', 'good')}.yaml").read_text()))
        if name == "awake":  # the API server of the test bed, 1.36, refuses an HPA with a minimum of 0
            for document in documents:
                document["spec"].pop("minReplicas", None)
        try:
            items = store_objects(cluster.in_namespace(f"capture-{code.lower()}-{name}"), documents)
        except ApiError as error:
            refused = str(error)
            continue
        captured = {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": {"of": name}}, "items": items}
        (FOLDER / code / "captured.json").write_text(json.dumps(captured, indent=1, sort_keys=True) + "\n")
        print(f"{code}: {name}{f' (the bad one was refused: {refused[:160]})' if refused else ''}")
        return
    print(f"{code}: both refused: {refused[:300]}")


def store_objects(cluster: Cluster, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Create the objects in the namespace, and return them as stored."""
    stored = []
    for document in documents:
        if document["kind"] in NO_API_OBJECT:
            text = yaml.safe_dump(document, sort_keys=False)
            document = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kubelet-config"},
                "data": {"kubelet": text},
            }
        document["metadata"].pop("namespace", None)
        document["metadata"].pop("creationTimestamp", None)
        for owner in document["metadata"].get("ownerReferences", ()):
            # The garbage collector removes what belongs to an owner that is not there.
            owner["uid"] = cluster.get(owner["kind"], owner["name"])["metadata"]["uid"]
        is_cluster_wide = document["kind"] in ("Node", "MutatingWebhookConfiguration", "PodPolicy")
        namespace = None if is_cluster_wide else cluster.namespace
        if is_cluster_wide:
            cluster.delete(document["kind"], document["metadata"]["name"])
        cluster.create(document)
        if "status" in document and document["kind"] == "HorizontalPodAutoscaler":
            cluster.patch(document["kind"], document["metadata"]["name"], {"status": document["status"]}, sub="status")
        result = cluster.get(document["kind"], document["metadata"]["name"], namespace)
        stored.append(result)
        if is_cluster_wide:
            cluster.delete(document["kind"], document["metadata"]["name"])
    return [trim_object(item, cluster.namespace) for item in stored]


def trim_object(item: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return the object without what differs from run to run, in the namespace of the manifests."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in VOLATILE}
    if "namespace" in metadata:
        metadata["namespace"] = "shop"
    trimmed = {**item, "metadata": metadata}
    return json.loads(json.dumps(trimmed).replace(f'"{namespace}"', '"shop"'))


if __name__ == "__main__":
    main(sys.argv[1:])
