"""Draws workloads with what surrounds them in a namespace: LimitRanges, VPAs, HPAs and budgets."""

from typing import Any

from hypothesis import strategies as st

from tests.cluster_of import Item

CPU = ("5m", "50m", "0.5", "1", "2500m", "8")
MEMORY = ("1Mi", "100M", "200Mi", "1Gi", "3e9", "16Gi")
_ORDER = {text: number for texts in (CPU, MEMORY) for number, text in enumerate(texts)}
RATIOS = ("1", "1.5", "2", "10")
MODES = ("Off", "Initial", "Recreate", "Auto", "InPlaceOrRecreate")
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


@st.composite
def amounts(draw: st.DrawFn) -> Item:
    """Requests and limits that the API server accepts: no request is above its limit."""
    requests, limits = dict[str, str](), dict[str, str]()
    for resource, texts in (("cpu", CPU), ("memory", MEMORY)):
        request, limit = draw(st.none() | st.sampled_from(texts)), draw(st.none() | st.sampled_from(texts))
        if request and limit and _ORDER[request] > _ORDER[limit]:
            request, limit = limit, request
        requests.update({resource: request} if request else {})
        limits.update({resource: limit} if limit else {})
    return {name: part for name, part in (("requests", requests), ("limits", limits)) if part}


@st.composite
def pod_specs(draw: st.DrawFn) -> Item:
    names = draw(st.sampled_from((("app",), ("app", "proxy"))))
    spec: Item = {"containers": [{"name": name, "image": "i", "resources": draw(amounts())} for name in names]}
    if draw(st.booleans()):
        sidecar = {"name": "mesh", "image": "i", "restartPolicy": "Always", "resources": draw(amounts())}
        spec["initContainers"] = [sidecar]
    if draw(st.integers(0, 4)) == 0:
        spec["priorityClassName"] = "system-cluster-critical"
    return spec


@st.composite
def limit_ranges(draw: st.DrawFn) -> Item:
    """A LimitRange whose default is not above its maximum and not below its minimum."""
    low, middle, high = sorted(draw(st.lists(st.sampled_from(MEMORY), min_size=3, max_size=3)), key=_ORDER.__getitem__)
    wanted = {
        "min": {"memory": low},
        "defaultRequest": {"memory": middle},
        "default": {"memory": high},
        "max": {"memory": high},
    }
    # Without a default, the API server takes the maximum, and so it does for requests.
    parts = draw(st.sampled_from((("min",), ("max",), ("default", "max"), ("min", "defaultRequest", "default", "max"))))
    limit = {"type": "Container", **{name: wanted[name] for name in parts}}
    return namespaced("v1", "LimitRange", spec={"limits": [limit]})


@st.composite
def ratios(draw: st.DrawFn) -> Item:
    """A LimitRange that bounds only the ratio of limit to request."""
    ratio = {draw(st.sampled_from(("cpu", "memory"))): draw(st.sampled_from(RATIOS))}
    return namespaced("v1", "LimitRange", spec={"limits": [{"type": "Container", "maxLimitRequestRatio": ratio}]})


@st.composite
def vpas(draw: st.DrawFn) -> Item:
    policy: Item = {"containerName": draw(st.sampled_from(("*", "app")))}
    low, high = sorted(draw(st.tuples(st.sampled_from(MEMORY), st.sampled_from(MEMORY))), key=_ORDER.__getitem__)
    policy.update(
        draw(
            st.sampled_from(
                (
                    {},
                    {"minAllowed": {"memory": low}},
                    {"maxAllowed": {"memory": high}},
                    {"minAllowed": {"memory": low}, "maxAllowed": {"memory": high}},
                )
            )
        )
    )
    policy.update(
        draw(
            st.sampled_from(
                ({}, {"controlledValues": "RequestsOnly"}, {"controlledResources": ["memory"]}, {"mode": "Off"})
            )
        )
    )
    update: Item = {"updateMode": draw(st.sampled_from(MODES))}
    update.update(draw(st.sampled_from(({}, {"minReplicas": 1}))))
    spec = {"targetRef": TARGET, "updatePolicy": update, "resourcePolicy": {"containerPolicies": [policy]}}
    return namespaced("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", spec=spec)


@st.composite
def hpas(draw: st.DrawFn) -> Item:
    least = draw(st.integers(1, 4))
    resource = draw(st.sampled_from(("cpu", "memory")))
    target = {"type": "Utilization", "averageUtilization": draw(st.sampled_from((50, 80, 200)))}
    spec: Item = {
        "scaleTargetRef": TARGET,
        "minReplicas": least,
        "maxReplicas": least + draw(st.integers(0, 6)),
        "metrics": [{"type": "Resource", "resource": {"name": resource, "target": target}}],
    }
    if draw(st.booleans()):
        spec["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": draw(st.sampled_from((0, 300, 1800)))}}
    return namespaced("autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)


@st.composite
def budgets(draw: st.DrawFn) -> Item:
    allowed = draw(
        st.sampled_from(
            (
                {"minAvailable": 1},
                {"minAvailable": "100%"},
                {"maxUnavailable": 0},
                {"maxUnavailable": 1},
                {"minAvailable": 3},
            )
        )
    )
    policy = draw(st.sampled_from(({}, {"unhealthyPodEvictionPolicy": "IfHealthyBudget"})))
    spec = {"selector": {"matchLabels": {"app": "web"}}, **allowed, **policy}
    return namespaced("policy/v1", "PodDisruptionBudget", spec=spec)


def namespaced(version: str, kind: str, **more: Any) -> Item:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, **more}


@st.composite
def namespaces(draw: st.DrawFn) -> list[Item]:
    """A Deployment, and any of the others."""
    replicas = draw(st.sampled_from(({}, {"replicas": 0}, {"replicas": 1}, {"replicas": 3})))
    template = {"metadata": {"labels": {"app": "web"}}, "spec": draw(pod_specs())}
    spec = {**replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    ranges = limit_ranges() | ratios()
    others = [one for drawn in (ranges, vpas(), hpas(), budgets()) if (one := draw(st.none() | drawn))]
    return [namespaced("apps/v1", "Deployment", spec=spec), *others]


@st.composite
def bounding_limit_ranges(draw: st.DrawFn) -> Item:
    """A LimitRange for containers or for whole pods, with any of its bounds, of cpu or of memory."""
    resource, texts = draw(st.sampled_from((("cpu", CPU), ("memory", MEMORY))))
    low, middle, high = sorted(draw(st.lists(st.sampled_from(texts), min_size=3, max_size=3)), key=_ORDER.__getitem__)
    bounds: Item = {"min": low, "default": middle, "max": high, "maxLimitRequestRatio": draw(st.sampled_from(RATIOS))}
    of_pods = (("max",), ("min", "max"), ("maxLimitRequestRatio",))
    kind = draw(st.sampled_from(("Container", "Container", "Pod")))
    parts = draw(st.sampled_from(of_pods if kind == "Pod" else (*of_pods, ("default",), ("min",), tuple(bounds))))
    limit = {"type": kind, **{name: {resource: bounds[name]} for name in parts}}
    return namespaced("v1", "LimitRange", spec={"limits": [limit]})


@st.composite
def quotas(draw: st.DrawFn) -> Item:
    """A ResourceQuota without a status, as in a file."""
    names = {"requests.cpu": CPU, "limits.cpu": CPU, "requests.memory": MEMORY, "limits.memory": MEMORY}
    name = draw(st.sampled_from(tuple(names)))
    return namespaced("v1", "ResourceQuota", spec={"hard": {name: draw(st.sampled_from(names[name]))}})


@st.composite
def pod_level_resources(draw: st.DrawFn) -> Item:
    """The field `resources` of a pod, or nothing."""
    amount = draw(amounts()) if draw(st.booleans()) else {}
    return {"resources": amount} if amount else {}


@st.composite
def bounded_namespaces(draw: st.DrawFn) -> list[Item]:
    """A Deployment of three pods in a namespace with bounds: LimitRanges, a quota, pod-level resources."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**draw(pod_specs()), **draw(pod_level_resources())}}
    template["spec"].pop("priorityClassName", None)
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    ranges = draw(st.lists(bounding_limit_ranges(), max_size=2))
    for number, one in enumerate(ranges):
        one["metadata"] = {"name": f"bounds-{number}", "namespace": "shop"}
    others = [one for drawn in (quotas(), hpas()) if (one := draw(st.none() | drawn))]
    return [namespaced("apps/v1", "Deployment", spec=spec), *ranges, *others]
