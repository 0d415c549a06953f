"""Pods that grow in one direction each, as an API server lets them through to a mutating webhook.

It validates after the webhooks were asked: what it would refuse in the end (two containers of one name, a toleration
that says nothing) reaches us. What it reads at all is typed: other fields than a pod has are dropped before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

from tests.hostile.world import NAMESPACE, OWNER

Json = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PLACES = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
"""What the server fills in in every container before it asks."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One direction in which a pod may grow."""

    name: str
    make: Callable[[int], Json]
    most: int
    """The largest n that the gate lets through, or close to it."""


def review(pod: Json, uid: str = "u-1") -> bytes:
    """As the API server sends it."""
    gvr = {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": gvr,
        "namespace": NAMESPACE,
        "operation": "CREATE",
        "userInfo": {"username": "mallory", "groups": ["system:authenticated"]},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(whole, separators=(",", ":")).encode()


def pod(spec: Json | None = None, **metadata: Any) -> Json:
    """A pod of a Deployment, with one container unless the spec has some."""
    meta = {
        "generateName": "web-7d9c6b5f48-",
        "namespace": NAMESPACE,
        "ownerReferences": [OWNER],
        "labels": {"app": "web", "pod-template-hash": "7d9c6b5f48"},
    }
    labels = {**meta["labels"], **metadata.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, **metadata, "labels": labels},
        "spec": {"containers": [container("app")], "restartPolicy": "Always", **(spec or {})},
        "status": {},
    }


def container(name: str, **fields: Any) -> Json:
    return {"name": name, "image": "docker.io/evil/app:1", "resources": {}, **PLACES, **fields}


def _containers(count: int, **fields: Any) -> Json:
    return pod({"containers": [container(f"c-{at}", **fields) for at in range(count)]})


def _sized(count: int) -> Json:
    each = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
    return _containers(count, resources=each)


def _guaranteed(count: int) -> Json:
    """Half a core each: at every count the pod fits on a node as it was submitted, so that the same is asked of all."""
    return _containers(count, resources={part: {"cpu": "500m", "memory": "128Mi"} for part in ("requests", "limits")})


def _init(count: int, **fields: Any) -> Json:
    return pod({"initContainers": [container(f"side-{at}", **fields) for at in range(count)]})


def _amounts(count: int) -> Json:
    """No two amounts alike, so that none is remembered."""
    sized = [{"cpu": f"{100 + at}m", "memory": f"{70_000_000 + at}"} for at in range(count)]
    return pod(
        {
            "containers": [
                container(f"c-{at}", resources={"limits": one, "requests": one}) for at, one in enumerate(sized)
            ]
        }
    )


def _selected(count: int) -> Json:
    return pod({"nodeSelector": {f"k{at}": "v" for at in range(count)}})


def _required(terms: list[Json]) -> Json:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def _in(key: str, *values: str, operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def _terms(count: int) -> list[Json]:
    return [{"matchExpressions": [_in(f"t{at}", "v")]} for at in range(count)]


def _selected_and_required(count: int) -> Json:
    """A base of n keys beside n terms: n² where the base is looked at again for each."""
    return pod({"nodeSelector": {f"k{at}": "v" for at in range(count)}, "affinity": _required(_terms(count))})


def _contradicting(count: int) -> Json:
    """Every term contradicts the selector, so that all must be looked at and none will do."""
    terms = [{"matchExpressions": [_in("k0", f"w{at}")]} for at in range(count)]
    return pod({"nodeSelector": {f"k{at}": "v" for at in range(count)}, "affinity": _required(terms)})


def _expressions(count: int) -> Json:
    return pod({"affinity": _required([{"matchExpressions": [_in(f"e{at}", "v") for at in range(count)]}])})


def _one_key(count: int) -> Json:
    """A few hundred expressions of one key, each forbidding many of the values that another one allows: `count` values
    are forbidden in all."""
    side = max(isqrt(count), 1)
    values = [f"v{at}" for at in range(side)]
    widths = [side] * (count // side) + [count % side] * (count % side > 0)
    same = [_in("k", *values[:width], operator="NotIn") for width in widths]
    return pod({"affinity": _required([{"matchExpressions": [_in("k", "free", *values), *same]}])})


def _values(count: int) -> Json:
    return pod({"affinity": _required([{"matchExpressions": [_in("k", *(f"v{at}" for at in range(count)))]}])})


def _bounds(count: int) -> Json:
    """Numbers above and below, of one key."""
    same = [_in("k", str(at), operator="Gt") for at in range(count // 2)]
    values = _in("k", *(str(at) for at in range(count // 2)))
    return pod({"affinity": _required([{"matchExpressions": [values, *same]}])})


def _fields(count: int) -> Json:
    return pod({"affinity": _required([{"matchFields": [_in("metadata.name", f"n{at}")]} for at in range(count)])})


def _empty_terms(count: int) -> Json:
    return pod({"affinity": _required([{} for _ in range(count)])})


def _preferred(count: int) -> Json:
    terms = [{"weight": 1, "preference": one} for one in _terms(count)]
    return pod({"affinity": {"nodeAffinity": {PREFERRED: terms}}})


def _apart(count: int) -> Json:
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}, "namespaces": ["a", "b"]}
    return pod({"affinity": {"podAntiAffinity": {REQUIRED: [term] * count}}})


def _tolerating(count: int, **fields: Any) -> Json:
    return pod({"tolerations": [{"key": f"t{at}", "operator": "Equal", "value": "v", **fields} for at in range(count)]})


def _alike_tolerations(count: int) -> Json:
    return pod(
        {
            "tolerations": [
                {"key": "t", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": at}
                for at in range(count)
            ]
        }
    )


def _nothing_tolerated(count: int) -> Json:
    return pod({"tolerations": [{} for _ in range(count)]})


def _spread(count: int, key: str = "zone-{}") -> Json:
    one = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}
    return pod({"topologySpreadConstraints": [{**one, "topologyKey": key.format(at)} for at in range(count)]})


def _extended(count: int) -> Json:
    amounts = {f"example.com/d{at}": "1" for at in range(count)}
    return pod({"containers": [container("app", resources={"requests": amounts, "limits": amounts})]})


def _extended_everywhere(count: int) -> Json:
    side = isqrt(count)
    many = [{f"example.com/d{at}-{number}": "1" for number in range(side)} for at in range(side)]
    return pod(
        {
            "containers": [
                container(f"c-{at}", resources={"requests": one, "limits": one}) for at, one in enumerate(many)
            ]
        }
    )


def _extended_in_turn(count: int) -> Json:
    """Sidecars: each of them is added to all that stand before it."""
    side = isqrt(count)
    many = [{f"example.com/d{at}-{number}": "1" for number in range(side)} for at in range(side)]
    return pod(
        {
            "initContainers": [
                container(f"s-{at}", restartPolicy="Always", resources={"limits": one}) for at, one in enumerate(many)
            ]
        }
    )


def _ports(count: int) -> Json:
    ports = [{"containerPort": at, "hostPort": at, "protocol": "TCP"} for at in range(1, count + 1)]
    return pod({"containers": [container("app", ports=ports)], "hostNetwork": True})


def _volumes(count: int) -> Json:
    return pod({"volumes": [{"name": f"scratch-{at}", "emptyDir": {}} for at in range(count)]})


def _named_volumes(count: int) -> Json:
    """Volumes, and an annotation that names as many others already."""
    named = ",".join(f"other-{at}" for at in range(count))
    return {
        **_volumes(count),
        "metadata": {
            **_volumes(1)["metadata"],
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": named},
        },
    }


def _overhead(count: int) -> Json:
    return pod({"overhead": {f"example.com/d{at}": "1" for at in range(count)}})


def _claiming(count: int) -> Json:
    """A marker that says of n policies that each decided one field."""
    by = {f"p{at}": {f"containers[app].requests.cpu{at}": "1"} for at in range(count)}
    text = json.dumps({"pod": fingerprint(), "by": by}, separators=(",", ":"))
    return pod(annotations={"trimtab.dev/changed": text})


def fingerprint() -> str:
    """Of these pods: a marker that fits is read."""
    import msgspec

    from trimtab.cluster.api.pod import Pod
    from trimtab.policy import changed_annotation as marker

    return marker.pod_fingerprint(msgspec.convert(pod(), Pod), NAMESPACE)


def _applied(count: int) -> Json:
    """A bare pod that is kept by `kubectl apply`, with a large annotation of what was applied."""
    spec = {"tolerations": [{"key": f"t{at}"} for at in range(count)]}
    text = json.dumps({"spec": spec, "metadata": {}})
    bare = pod(annotations={"kubectl.kubernetes.io/last-applied-configuration": text})
    del bare["metadata"]["ownerReferences"]
    return bare


def _owners(count: int) -> Json:
    return pod(ownerReferences=[{**OWNER, "controller": False, "name": f"o{at}"} for at in range(count)])


def _labelled(count: int) -> Json:
    return pod(labels={f"l{at}": "v" for at in range(count)})


def _annotated(count: int) -> Json:
    return pod(annotations={f"a{at}": "v" for at in range(count)})


def _updated(count: int) -> Json:
    """Containers, and a note of the VPA's webhook that names as many."""
    text = "; ".join(f"container {at}: cpu request" for at in range(count))
    document = _sized(count)
    document["metadata"]["annotations"] = {"vpaUpdates": f"Pod resources updated by web: {text}"}
    return document


def _long_annotation(count: int) -> Json:
    return pod(annotations={"note": "x" * count})


def _boosted(count: int) -> Json:
    return pod(annotations={f"vpaCpuStartupBoost/c-{at}": "{}" for at in range(count)})


def _long_name(count: int) -> Json:
    return pod({"containers": [container("c" * count)]})


def _long_image(count: int) -> Json:
    return pod({"containers": [container("app", image="a/" * (count // 2) + "b")]})


def _long_key(count: int) -> Json:
    return pod({"nodeSelector": {"a." * (count // 2) + "/b": "-" * count}})


def _long_amount(count: int) -> Json:
    return pod({"containers": [container("app", resources={"limits": {"cpu": "0" * count + "1"}})]})


def _managed(count: int) -> Json:
    fields = {f"f:field-{at}": {} for at in range(count)}
    return pod(managedFields=[{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": fields}}])


def _with_status(count: int) -> Json:
    """The server drops a status only after it has asked."""
    conditions = [{"type": f"t{at}", "status": "True"} for at in range(count)]
    return {**pod(), "status": {"conditions": conditions}}


def _environment(count: int) -> Json:
    return pod({"containers": [container("app", env=[{"name": f"E{at}", "value": "v"} for at in range(count)])]})


def _gated(count: int) -> Json:
    return pod({"schedulingGates": [{"name": f"g{at}"} for at in range(count)]})


def _claims(count: int) -> Json:
    claims = [{"name": f"c{at}", "resourceClaimName": "x"} for at in range(count)]
    inside = [{"name": f"c{at}"} for at in range(count)]
    return pod({"resourceClaims": claims, "containers": [container("app", resources={"claims": inside})]})


def _null(count: int) -> Json:
    """What is null is read a second way."""
    return pod({"affinity": None, "volumes": [{"name": f"v{at}", "emptyDir": None} for at in range(count)]})


SHAPES: tuple[Shape, ...] = (
    Shape("containers", _containers, 100),
    Shape("containers-sized", _sized, 100),
    Shape("containers-guaranteed", _guaranteed, 100),
    Shape("containers-of-one-name", lambda n: pod({"containers": [container("c")] * n}), 100),
    Shape("init-containers", _init, 99),
    Shape("sidecars", lambda n: _init(n, restartPolicy="Always"), 99),
    Shape("amounts-all-different", _amounts, 100),
    Shape("node-selector", _selected, 256),
    Shape("selector-and-terms", _selected_and_required, 256),
    Shape("selector-against-terms", _contradicting, 256),
    Shape("expressions", _expressions, 1000),
    Shape("expressions-of-one-key", _one_key, 3700),
    Shape("values", _values, 4000),
    Shape("numbers-of-one-key", _bounds, 1980),
    Shape("terms-by-field", _fields, 256),
    Shape("terms-empty", _empty_terms, 256),
    Shape("terms-preferred", _preferred, 256),
    Shape("pod-anti-affinity", _apart, 256),
    Shape("tolerations", _tolerating, 256),
    Shape("tolerations-alike", _alike_tolerations, 256),
    Shape("tolerations-of-nothing", _nothing_tolerated, 256),
    Shape("spread", _spread, 256),
    Shape("spread-over-one-key", lambda n: _spread(n, "zone"), 256),
    Shape("extended-resources", _extended, 500),
    Shape("extended-resources-everywhere", _extended_everywhere, 500),
    Shape("extended-resources-of-sidecars", _extended_in_turn, 1000),
    Shape("host-ports", _ports, 2000),
    Shape("volumes", _volumes, 2000),
    Shape("volumes-named", _named_volumes, 2000),
    Shape("overhead", _overhead, 1000),
    Shape("forged-marker", _claiming, 4000),
    Shape("applied-by-kubectl", _applied, 10_000),
    Shape("owner-references", _owners, 500),
    Shape("labels", _labelled, 1990),
    Shape("annotations", _annotated, 2000),
    Shape("boosts", _boosted, 2000),
    Shape("updated-by-vpa", _updated, 100),
    Shape("long-annotation", _long_annotation, 250_000),
    Shape("long-container-name", _long_name, 250_000),
    Shape("long-image", _long_image, 250_000),
    Shape("long-selector-key", _long_key, 120_000),
    Shape("long-amount", _long_amount, 250_000),
    Shape("managed-fields", _managed, 10_000),
    Shape("status", _with_status, 5000),
    Shape("environment", _environment, 8000),
    Shape("scheduling-gates", _gated, 4000),
    Shape("resource-claims", _claims, 2000),
    Shape("nulls", _null, 2000),
)
