"""Is every intermediate state of a plan allowed? A second opinion that shares no code with the planner.

It reads the raw JSON of the snapshot and walks the moves one by one: budgets in every turn of every wave, room on
every receiver at every moment, node selectors, taints, ports, anti-affinity both ways, zone spread, volumes. It
knows the kinds of constraint that the shared clusters contain, and fails loudly on any other.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SUFFIX = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def number(resource, text):
    text = str(text)
    if resource == "cpu":
        return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)
    return int(text[:-2]) * SUFFIX[text[-2:]] if text[-2:] in SUFFIX else int(text)


def requests(spec):
    total, peak = Counter(), Counter()
    for container in spec["containers"]:
        for resource, text in container.get("resources", {}).get("requests", {}).items():
            total[resource] += number(resource, text)
    for container in spec.get("initContainers", ()):
        for resource, text in container["resources"]["requests"].items():
            peak[resource] = max(peak[resource], number(resource, text))
    for resource, most in peak.items():
        total[resource] = max(total[resource], most)
    for resource, text in spec.get("overhead", {}).items():
        total[resource] += number(resource, text)
    total["pods"] = 1
    return total


@dataclass
class State:
    nodes: dict
    pods: dict
    budgets: dict
    volumes: dict
    on: dict = field(default_factory=lambda: defaultdict(set))
    used: dict = field(default_factory=lambda: defaultdict(Counter))
    by_app: dict = field(default_factory=lambda: defaultdict(set))
    where: dict = field(default_factory=dict)


def key(item):
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def app(pod):
    return pod["metadata"]["namespace"], pod["metadata"].get("labels", {}).get("app")


def read(items):
    kinds = defaultdict(list)
    for item in items:
        kinds[item["kind"]].append(item)
    volumes = {item["metadata"]["name"]: item["spec"] for item in kinds["PersistentVolume"]}
    claims = {key(item): volumes[item["spec"]["volumeName"]] for item in kinds["PersistentVolumeClaim"]}
    budgets = {}
    for item in kinds["PodDisruptionBudget"]:
        selector = item["spec"]["selector"]
        assert list(selector) == ["matchLabels"], selector
        assert list(selector["matchLabels"]) == ["app"], selector
        budgets[(item["metadata"]["namespace"], selector["matchLabels"]["app"])] = item["status"]["disruptionsAllowed"]
    state = State({i["metadata"]["name"]: i for i in kinds["Node"]}, {key(i): i for i in kinds["Pod"]}, budgets, claims)
    for name, pod in state.pods.items():
        put(state, name, pod["spec"]["nodeName"])
    return state


def put(state, name, node):
    pod = state.pods[name]
    state.where[name] = node
    state.on[node].add(name)
    state.by_app[app(pod)].add(name)
    state.used[node].update(requests(pod["spec"]))


def lift(state, name):
    pod = state.pods[name]
    node = state.where.pop(name)
    state.on[node].discard(name)
    state.by_app[app(pod)].discard(name)
    state.used[node].subtract(requests(pod["spec"]))


def matches(labels, terms):
    for term in terms:
        assert set(term) == {"matchExpressions"}, term
        for expression in term["matchExpressions"]:
            assert expression["operator"] == "In", expression
        if all(labels.get(e["key"]) in e["values"] for e in term["matchExpressions"]):
            return True
    return False


def check_place(state, name, target, leaving):
    pod, node = state.pods[name], state.nodes[target]
    spec, labels = pod["spec"], node["metadata"]["labels"]
    assert target not in leaving, f"{name} goes to {target}, which is being emptied"
    have = node["status"]["allocatable"]
    for resource, amount in requests(spec).items():
        free = number(resource, have.get(resource, "0")) - state.used[target][resource]
        assert amount <= free, f"{name} on {target}: {amount} of {resource} asked, {free} free"
    assert all(labels.get(k) == v for k, v in spec.get("nodeSelector", {}).items()), f"{name} is not selected"
    affinity = spec.get("affinity", {})
    terms = affinity.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    assert terms is None or matches(labels, terms["nodeSelectorTerms"]), f"{name} affinity"
    for taint in node["spec"].get("taints", ()):
        assert any(t.get("key") in (None, taint["key"]) for t in spec.get("tolerations", ())), f"{name} taint {taint}"
    for volume in spec.get("volumes", ()):
        claim = volume.get("persistentVolumeClaim")
        if claim:
            required = state.volumes[f"{pod['metadata']['namespace']}/{claim['claimName']}"]["nodeAffinity"]["required"]
            assert matches(labels, required["nodeSelectorTerms"]), f"{name} volume"
    check_company(state, name, pod, target)


def check_company(state, name, pod, target):
    spec = pod["spec"]
    ports = {p["hostPort"] for c in spec["containers"] for p in c.get("ports", ()) if p.get("hostPort")}
    if ports:
        for other in state.on[target]:
            host_ports = {
                p.get("hostPort") for c in state.pods[other]["spec"]["containers"] for p in c.get("ports", ())
            }
            assert not ports & host_ports, f"{name} port on {target}"
    mine = state.by_app[app(pod)]
    for term in spec.get("affinity", {}).get("podAntiAffinity", {}).get(REQUIRED, ()):
        assert term["topologyKey"] == HOST
        assert all(state.where[other] != target for other in mine), f"{name} anti-affinity on {target}"
    for spread in spec.get("topologySpreadConstraints", ()):
        if spread["whenUnsatisfiable"] == "ScheduleAnyway":
            continue
        counts = Counter({n["metadata"]["labels"][spread["topologyKey"]]: 0 for n in state.nodes.values()})
        for other in mine:
            counts[state.nodes[state.where[other]]["metadata"]["labels"][spread["topologyKey"]]] += 1
        here = state.nodes[target]["metadata"]["labels"][spread["topologyKey"]]
        skew = counts[here] + 1 - min(counts.values())
        assert skew <= spread["maxSkew"], f"{name} spread over {spread['topologyKey']}: {skew}"


def may_move(pod):
    """The rules for pods that hold in the shared clusters, told again."""
    notes = pod["metadata"].get("annotations", {})
    local = any("emptyDir" in volume for volume in pod["spec"].get("volumes", ()))
    return bool(pod["metadata"].get("ownerReferences")) and not local and "false" not in notes.values()


def is_daemon(pod):
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))


def verify(items, waves):
    """`waves`: lists of steps (node, moves), a move (pod, source, target, turn). Raises on the first fault."""
    state, moved, gone = read(items), set(), set()
    for wave in waves:
        spent_in_wave = defaultdict(lambda: defaultdict(Counter))
        for node, moves in wave:
            leaving = {node}
            assert node not in gone
            for pod, source, target, turn in moves:
                assert source == node == state.where[pod], f"{pod} is on {state.where[pod]}, not on {source}"
                assert pod not in moved, f"{pod} is moved twice"
                assert may_move(state.pods[pod]), f"{pod} may not move"
                budget = app(state.pods[pod])
                if budget in state.budgets:
                    spent_in_wave[budget][node][turn] += 1
                moved.add(pod)
                lift(state, pod)
                check_place(state, pod, target, leaving | gone)
                put(state, pod, target)
            left = [pod for pod in state.on[node] if not is_daemon(state.pods[pod])]
            assert not left, f"{node} still holds {left}"
            gone.add(node)
        for budget, nodes in spent_in_wave.items():
            # Whatever the order of nodes within the wave: the worst turn of each node at the same moment.
            worst = sum(max(turns.values()) for turns in nodes.values())
            assert worst <= state.budgets[budget], f"budget {budget}: {worst} at once, {state.budgets[budget]} allowed"
    return len(moved), gone


def verify_headroom(items, waves, label, percent):
    """Does every pool that lost a node, or took a pod from another, keep its share of cpu and of memory free?"""
    state, gone, touched = read(items), set(), set()
    pool = {name: node["metadata"]["labels"].get(label) for name, node in state.nodes.items()}
    for node, moves in (step for wave in waves for step in wave):
        gone.add(node)
        touched.add(pool[node])
        for name, source, target, _ in moves:
            lift(state, name)
            put(state, name, target)
            touched |= {pool[target]} - {pool[source]}
    for resource in ("cpu", "memory"):
        for name in touched:
            stay = [node for node in state.nodes if pool[node] == name and node not in gone]
            have = sum(number(resource, state.nodes[node]["status"]["allocatable"][resource]) for node in stay)
            used = sum(state.used[node][resource] for node in stay)
            assert (have - used) * 100 >= percent * have, f"pool {name}: {have - used} of {have} {resource} free"
