"""A cluster that is 88 % full: the openb workload, placed as the default scheduler places it.

`openb_workload` makes nodes and Deployments. Here every Deployment becomes a ReplicaSet with
its pods, and the pods are placed one after the other, in the order of the file, as NodeResourcesFit with LeastAllocated
scores: on the node with the largest share free, cpu and memory weighed equally after the pod has come; among equals on
the one with the fewest pods of the workload, then by name. DaemonSet pods are there first. A pod that fits nowhere is
left out, and its ReplicaSet wants one less. Budgets get the status that their controller would write.
"""

import json

from tests.bench.openb_workload import WorkloadOptions, make_workload

Item = dict[str, object]


def full_cluster(fill: float = 0.88, seed: int = 4) -> bytes:
    """One List of nodes, pods, ReplicaSets and budgets as JSON."""
    items = make_workload(WorkloadOptions(fill=fill, seed=seed))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(_placed(items))}).encode()


class _Place:
    def __init__(self, node):
        have = node["status"]["allocatable"]
        self.name = node["metadata"]["name"]
        self.have = self.cpu, self.memory = int(have["cpu"][:-1]), int(have["memory"][:-2])
        self.slots = int(have["pods"])
        self.apps = {}

    def score(self, cpu, memory):
        """Thousandths free once the pod has come, as LeastAllocated counts; None where it does not fit."""
        if self.cpu < cpu or self.memory < memory or not self.slots:
            return None
        return ((self.cpu - cpu) * 1000 // self.have[0] + (self.memory - memory) * 1000 // self.have[1]) // 2

    def take(self, app, cpu, memory):
        self.cpu, self.memory, self.slots = self.cpu - cpu, self.memory - memory, self.slots - 1
        self.apps[app] = self.apps.get(app, 0) + 1


def _placed(items):
    kinds = {}
    for item in items:
        kinds.setdefault(item["kind"], []).append(item)
    places = [_Place(node) for node in kinds["Node"]]
    for node in kinds["Node"]:
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        yield node
    for template in kinds["DaemonSet"]:
        for place in places:
            yield _pod(template, f"{template['metadata']['name']}-{place.name}", place)
    counts = {}
    for pod in kinds["Pod"]:
        place = _best(places, pod["spec"], pod["metadata"]["name"])
        if place is not None:
            yield {**pod, "spec": {**pod["spec"], "nodeName": place.name}, "status": _STATUS}
    for workload in kinds["Deployment"]:
        actual_item = 0
        for _ in range(workload["spec"]["replicas"]):
            place = _best(places, workload["spec"]["template"]["spec"], workload["metadata"]["name"])
            if place is not None:
                yield _pod({**workload, "kind": "ReplicaSet"}, f"{workload['metadata']['name']}-{actual_item}", place)
                actual_item += 1
        counts[workload["metadata"]["name"]] = actual_item
        spec = {"replicas": actual_item, "selector": workload["spec"]["selector"]}
        meta = {**workload["metadata"], "uid": f"o-{workload['metadata']['name']}"}
        status = {"replicas": actual_item, "readyReplicas": actual_item}
        yield {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec, "status": status}
    for budget in kinds["PodDisruptionBudget"]:
        have, allowed = counts[budget["metadata"]["name"]], budget["spec"]["maxUnavailable"]
        budget["metadata"]["generation"] = 1
        budget["status"] = {
            "observedGeneration": 1,
            "expectedPods": have,
            "currentHealthy": have,
            "desiredHealthy": have - allowed,
            "disruptionsAllowed": allowed,
        }
        yield budget


_STATUS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _best(places, spec, app):
    requests = spec["containers"][0]["resources"]["requests"]
    cpu, memory = int(requests["cpu"][:-1]), int(requests["memory"][:-2])
    scored = [
        (-score, place.apps.get(app, 0), place.name, place)
        for place in places
        if (score := place.score(cpu, memory)) is not None
    ]
    if not scored:
        return None
    place = min(scored)[-1]
    place.take(app, cpu, memory)
    return place


def _pod(owner, name, place):
    template, kind, whose = owner["spec"]["template"], owner["kind"], owner["metadata"]["name"]
    uid = f"ds-{whose}" if kind == "DaemonSet" else f"o-{whose}"
    if kind == "DaemonSet":
        requests = template["spec"]["containers"][0]["resources"]["requests"]
        place.take(whose, int(requests["cpu"][:-1]), int(requests["memory"][:-2]))
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": whose, "uid": uid, "controller": True}
    metadata = {**template["metadata"], "name": name, "namespace": "default", "uid": name}
    metadata["ownerReferences"] = [reference]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**template["spec"], "nodeName": place.name},
        "status": _STATUS,
    }
