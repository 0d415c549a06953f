"""What `trimtab policies compile` prints, on a real API server and without any process of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.build import policies, policy
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from trimtab.policy.image_names import image_test
from trimtab.policy.validating_policy import compile_validating_policy

ACTIONS = """{runtimeClass: {name: compiled, required: true}, priorityClass: {name: compiled, required: true},
    labels: {add: {cost: low}, required: true}, annotations: {add: {note: "y"}, required: true},
    placement: {nodeSelector: {zone: a}, require: [{label: pool, in: [a, b]}, {label: gpu, absent: true}],
        required: true},
    topologySpread: {constraints: [{topologyKey: zone}], required: true}}"""
MATCH = """{namespaces: {include: [NAMESPACE, "other-[ab]?"], exclude: ["x-*"]}, podLabels: {tier: "un*"},
    containers: {names: ["a*"], notImages: ["registry.example.com/*"]},
    exclude: [{podLabels: {spared: "*"}}, {containers: {images: ["ghcr.io/ours/*"]}}]}"""


def pod(name: str, *, image: str = "a:1", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "labels": {"tier": "untrusted", **(labels or {})}}
    containers = [{"name": "app", "image": image}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def installed(cluster: Cluster, name: str, actions: str, *, match: str, enforce: bool) -> str:
    """Applied as printed, and checked by the API server's own types; the policy's name."""
    document = policy(actions, name=name, match=match.replace("NAMESPACE", cluster.namespace))
    compiled = compile_validating_policy(policies(document).all[0], enforce=enforce)
    assert not compiled.problem
    for manifest in compiled.manifests:
        cluster.apply(manifest)
    kind, actual_name = "ValidatingAdmissionPolicy", compiled.manifests[0]["metadata"]["name"]
    cluster.eventually(
        lambda: "typeChecking" in cluster.get(kind, actual_name).get("status", {}), what="types are checked"
    )
    assert not cluster.get(kind, actual_name)["status"]["typeChecking"].get("expressionWarnings")
    return actual_name


def refused(cluster: Cluster, given: dict[str, Any]) -> str:
    try:
        cluster.create(given, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


@pytest.fixture
def sandbox(cluster: Cluster) -> Cluster:
    cluster.needs_own("policies for the whole cluster")
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    cluster.apply({**kind, "metadata": {"name": "compiled"}, "handler": "x"})
    return cluster


def test_every_expression_has_sound_types(sandbox: Cluster) -> None:
    installed(sandbox, f"all-{sandbox.namespace[-5:]}", ACTIONS, match=MATCH, enforce=False)


def test_a_pod_without_its_class_is_denied_and_one_with_it_is_not(sandbox: Cluster) -> None:
    actions = "{runtimeClass: {name: compiled, required: true}}"
    installed(sandbox, f"deny-{sandbox.namespace[-5:]}", actions, match=MATCH, enforce=True)
    sandbox.eventually(lambda: "requires runtimeClassName" in refused(sandbox, pod("bad")), what="the policy in force")
    assert refused(sandbox, pod("good", runtimeClassName="compiled")) == ""
    assert refused(sandbox, pod("ours", image="registry.example.com/a:1")) == ""
    assert refused(sandbox, pod("spared", labels={"spared": "yes"})) == ""
    assert refused(sandbox, pod("trusted", labels={"tier": "gold"})) == ""


REGISTRIES = (
    "ghcr.io/",
    "GHCR.IO/",
    "Ghcr.io:443/",
    "ghcr.io:4430/",
    "ghcr.io:0443/",
    "",
    "docker.io/",
    "index.docker.io/",
    "docker.io:443/",
    "registry-1.docker.io/",
    "INDEX.docker.io:443/",
    "bx.example.com/",
    "ax.example.com/",
    "localhost/",
    "team/",
    "r.corp.example/",
    "R.corp.example:443/",
    "evil.example/r.corp.example/",
    "evil/r.corp.example/",
    "nginx.evil.example/",
)


def test_images_are_compared_as_the_webhook_compares_them(sandbox: Cluster) -> None:
    patterns = (
        "ghcr.io/*",
        "docker.io/library/*",
        "docker.io/ours/*",
        "[!]a]x.example.com/*",
        "*.CORP.example/*",
        "?[+-9]corp.example/*",
        "x:*",
    )
    match = f"{{namespaces: {{include: [NAMESPACE]}}, containers: {{notImages: {json.dumps(patterns)}}}}}"
    actions = "{runtimeClass: {name: compiled, required: true}}"
    installed(sandbox, f"image-{sandbox.namespace[-5:]}", actions, match=match, enforce=True)
    sandbox.eventually(lambda: refused(sandbox, pod("bad", image="x.example.com/a")), what="the policy in force")
    images = [f"{registry}{rest}" for registry in REGISTRIES for rest in ("x:1", "ours/x", "a/b@sha256:" + "0" * 64)]
    denied = {image: bool(refused(sandbox, pod("p", image=image))) for image in images}
    assert denied == {image: not image_test(patterns)(image) for image in images}


def test_at_first_it_only_warns(sandbox: Cluster) -> None:
    actions = "{runtimeClass: {name: compiled, required: true}}"
    installed(sandbox, f"warn-{sandbox.namespace[-5:]}", actions, match=MATCH, enforce=False)

    def warning() -> str:
        assert refused(sandbox, pod("bad")) == ""
        return next((text for text in sandbox.api.warnings if "requires runtimeClassName" in text), "")

    sandbox.eventually(warning, what="the API server's warning")
