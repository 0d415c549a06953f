"""A tenant who may create pods in one namespace, and what a marker of their own making comes to."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.build import pod
from tests.controlplane.api import ApiError
from tests.e2e.installed import Installed
from tests.e2e.replicas import Replica
from tests.reasons import has_facts
from trimtab.cluster.api.meta import change
from trimtab.policy.changed_annotation import ANNOTATION, pod_fingerprint
from trimtab.policy.pod_context import OPT_OUT

CLASS, SANDBOX, STRICT = "adversary-sandbox", "adversary-sandbox", "adversary-strict"


@pytest.fixture(scope="module")
def guarded(here: Installed) -> Installed:
    """A policy that gives pods a class, and one that requires it of those with a label."""
    cluster = here.cluster
    cluster.apply({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": CLASS}, "handler": "x"})
    chosen = {"name": CLASS, "override": True}
    namespaces = {"namespaces": {"include": [cluster.namespace]}}
    for name, match, settings, more in (
        (SANDBOX, namespaces, chosen, {}),
        (STRICT, {**namespaces, "podLabels": {"strict": "yes"}}, {**chosen, "required": True}, {"priority": 9}),
    ):
        spec = {"match": match, "actions": {"runtimeClass": settings}, **more}
        meta = {"name": name}
        cluster.apply({"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": meta, "spec": spec})
    cluster.eventually(lambda: _class(cluster.create(_pod(), dryRun="All")) == CLASS, what="pods in the sandbox")
    for replica in here.replicas:  # each by itself: the API server keeps its connection to one of them
        cluster.eventually(lambda replica=replica: _knows(replica), within=60, what="both policies and the key known")
    return here


def _knows(replica: Replica) -> bool:
    """Whether this replica signs what it changes, and requires the class where it is to."""
    patched = base64.b64decode(replica.asked(_pod()).get("patch", "")).decode()
    strict = _pod(labels={"strict": "yes"}, annotations={OPT_OUT: "true"})
    return CLASS in patched and '\\"sig\\"' in patched and not replica.asked(strict)["allowed"]


def _pod(name: str = "bare", annotations: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "annotations": annotations or {}, **more}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "a", "image": "a:1"}]},
    }


def _class(stored: dict[str, Any]) -> str | None:
    name: str | None = stored["spec"].get("runtimeClassName")
    return name


def _forged(namespace: str, pod: Any) -> dict[str, str]:
    text = {"by": {"x": {"runtimeClassName": "none"}}, "pod": pod_fingerprint(pod, namespace)}
    return {ANNOTATION: json.dumps(text)}


def test_a_bare_pod_with_a_forged_marker_gets_its_class(guarded: Installed) -> None:
    cluster = guarded.cluster
    stored = cluster.create(_pod("forged", _forged(cluster.namespace, pod(name="forged"))))
    marker = json.loads(stored["metadata"]["annotations"][ANNOTATION])
    assert _class(stored) == CLASS
    assert ("x" in marker["by"], "sig" in marker, marker["by"][SANDBOX]["runtimeClassName"]) == (False, True, CLASS)


def test_a_template_of_a_stateful_set_with_a_forged_marker_gets_its_class(guarded: Installed) -> None:
    cluster = guarded.cluster
    first = pod(name="db-0", owner="StatefulSet/db")
    first = change(first, metadata=change(first.metadata, generate_name="db-"))
    template = _pod(annotations=_forged(cluster.namespace, first))
    del template["metadata"]["name"]
    template["metadata"]["labels"] = labels = {"app": "db"}
    spec = {
        "replicas": 1,
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": {"metadata": template["metadata"], "spec": template["spec"]},
    }
    meta = {"name": "db"}
    cluster.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec})
    cluster.eventually(lambda: _exists(guarded, "db-0"), within=60, what="the pod of the StatefulSet")
    assert _class(cluster.get("Pod", "db-0")) == CLASS


def _exists(here: Installed, name: str) -> bool:
    try:
        here.cluster.get("Pod", name)
    except ApiError as error:
        return error.status != 404
    return True


def test_a_marker_of_another_minute_decides_nothing(guarded: Installed) -> None:
    """A real marker of the pod's own, written by the webhook, some time ago."""
    cluster = guarded.cluster
    old = json.loads(cluster.create(_pod("again"), dryRun="All")["metadata"]["annotations"][ANNOTATION])
    old["at"] -= 600
    stored = cluster.create(_pod("again", {ANNOTATION: json.dumps(old)}))
    marker = json.loads(stored["metadata"]["annotations"][ANNOTATION])
    assert (_class(stored), marker["at"] > old["at"] + 500) == (CLASS, True)


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_an_author_who_opts_out_of_a_required_action_is_denied(guarded: Installed, where: str) -> None:
    metadata: dict[str, dict[str, str]] = {"labels": {"strict": "yes"}, "annotations": {}}
    metadata[where][OPT_OUT] = "true"
    with pytest.raises(ApiError) as refused:
        guarded.cluster.create(_pod("opted-out", **metadata))
    assert has_facts(str(refused.value), "adversary-strict", "runtimeClass", "opt itself out")


def test_a_tree_of_managed_fields_is_no_way_past_a_required_action(guarded: Installed) -> None:
    """Valid to the API server, too deep for the webhook's reader: the pod does not get in unseen."""
    fields = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": "TREE",
    }
    body = json.dumps(_pod("deep", labels={"strict": "yes"}, managedFields=[fields]))
    tree = '{"f:metadata":' + '{"f:a":' * 1500 + "{}" + "}" * 1501  # deeper than `json` writes
    api, namespace = guarded.cluster.api, guarded.cluster.namespace
    denied = ""
    try:
        path = api.path(api.kind("Pod"), namespace)
        stored = api.request("POST", path, body.replace('"TREE"', tree).encode())
    except ApiError as error:
        denied = str(error)
    assert has_facts(denied, "may require a change") or (not denied and _class(stored) == CLASS)
