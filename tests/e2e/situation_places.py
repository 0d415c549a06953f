"""Where a pod wants to be: by labels of nodes, taints and cordons, and by other pods."""

from __future__ import annotations

from random import Random

from tests.e2e.situation import NAMESPACES, NUMBERS, REQUIRED, Object, World, container


def node_selector(at: World, pod: Object) -> None:
    dice = at.dice
    drawn = {"disk": dice.choice(("ssd", "hdd", "")), "arch": dice.choice(("x", "y")), at.key("zone"): "z1"}
    pod["spec"]["nodeSelector"] = {key: drawn[key] for key in dice.sample(sorted(drawn), dice.choice((1, 1, 2)))}


def _expression(at: World) -> Object:
    dice = at.dice
    operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": "gen", "operator": operator, "values": [dice.choice(("0", "2", "3", "05", "100", "1_0"))]}
    key, values = dice.choice((("disk", ("ssd", "hdd", "")), ("gen", NUMBERS), ("arch", ("x", "y")), ("no", ("n",))))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": dice.sample(values, dice.randint(1, min(2, len(values))))}


def node_affinity(at: World, pod: Object) -> None:
    dice, terms = at.dice, []
    for _ in range(dice.randint(1, 3)):
        term: Object = {}
        if dice.random() < 0.8:
            term["matchExpressions"] = [_expression(at) for _ in range(dice.choice((1, 1, 2)))]
        if dice.random() < 0.3:
            term["matchFields"] = [_field(at) for _ in range(dice.choice((1, 1, 2)))]
        terms.append(term)
    _affinity(pod)["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}


def _field(at: World) -> Object:
    name = at.dice.choice([*(node["metadata"]["name"] for node in at.nodes), "nobody"])
    return {"key": "metadata.name", "operator": at.dice.choice(("In", "In", "NotIn")), "values": [name]}


def _affinity(pod: Object) -> Object:
    affinity: Object = pod["spec"].setdefault("affinity", {})
    return affinity


def tolerations(at: World, pod: Object) -> None:
    dice, drawn = at.dice, []
    for _ in range(dice.randint(0, 3)):
        toleration: Object = {}
        if dice.random() < 0.85:
            toleration["key"] = dice.choice(("team", "dedicated"))
        effect = dice.choice(("", "NoSchedule", "NoExecute", "PreferNoSchedule"))
        if effect:
            toleration["effect"] = effect
        if "key" not in toleration or dice.random() < 0.3:
            toleration["operator"] = "Exists"
        else:
            toleration |= {"value": dice.choice(("a", "b", "")), "operator": dice.choice(("Equal", ""))}
        drawn.append(toleration)
    pod["spec"]["tolerations"] = drawn


def cordons(at: World, pod: Object) -> None:
    """Some tolerate what keeps pods off a cordoned node."""
    key = at.dice.choice(("node.kubernetes.io/unschedulable", "other"))
    pod["spec"].setdefault("tolerations", []).append({"key": key, "operator": "Exists", "effect": "NoSchedule"})


# ── other pods ───────────────────────────────────────────────────────────────────────────────────────
def host_ports(at: World, pod: Object) -> None:
    dice, spec = at.dice, pod["spec"]
    port: Object = {"containerPort": 8080, "hostPort": dice.choice((8080, 8080, 9090))}
    if dice.random() < 0.6:
        port["hostIP"] = dice.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0", "127.0.0.1"))
    if dice.random() < 0.3:
        port["protocol"] = "UDP"
    how = dice.random()
    if how < 0.2:
        spec["hostNetwork"] = True
        spec["containers"][0]["ports"] = [{"containerPort": port["hostPort"]}]
    elif how < 0.4:
        sidecar = {**container("side", {"cpu": "10m"}), "ports": [port]}
        spec["initContainers"] = [{**sidecar, "restartPolicy": "Always"} if dice.random() < 0.6 else sidecar]
    else:
        spec["containers"][0]["ports"] = [port]


def _selector(dice: Random, keys: tuple[str, ...] = ("app", "track")) -> Object:
    drawn: Object = {}
    how = dice.random()
    if how < 0.08:
        return drawn
    if how < 0.7:
        drawn["matchLabels"] = {"app": dice.choice(("web", "db", "job"))}
    if how > 0.5:
        key, values = dice.choice([pair for pair in _LABELS if pair[0] in keys])
        operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        some = {"values": [dice.choice(values)]} if operator in ("In", "NotIn") else {}
        drawn["matchExpressions"] = [{"key": key, "operator": operator, **some}]
    return drawn


_LABELS = (("app", ("web", "db", "job")), ("track", ("blue", "green")))


def _term(at: World) -> Object:
    dice = at.dice
    term: Object = {"topologyKey": dice.choice(at.keys)}
    if dice.random() < 0.95:
        term["labelSelector"] = _selector(dice)
    how = dice.random()
    if how < 0.25:
        term["namespaces"] = dice.sample(sorted(NAMESPACES), dice.randint(1, 2))
    if 0.15 < how < 0.6:
        term["namespaceSelector"] = dice.choice(
            (
                {},
                {"matchLabels": {"team": "a"}},
                {"matchLabels": {"stage": "prod"}},
                {"matchLabels": {"team": "none"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                {
                    "matchExpressions": [
                        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["fit-red"]}
                    ]
                },
            )
        )
    if "labelSelector" in term and dice.random() < 0.2:
        term[dice.choice(("matchLabelKeys", "mismatchLabelKeys"))] = [dice.choice(("hash", "absent"))]
    return term


def pod_affinity(at: World, pod: Object) -> None:
    _affinity(pod)["podAffinity"] = {REQUIRED: [_term(at) for _ in range(at.dice.choice((1, 1, 2)))]}
    if at.dice.random() < 0.4:  # the first of its kind
        own = {"labelSelector": {"matchLabels": {"app": "first"}}, "topologyKey": at.dice.choice(at.keys)}
        pod["metadata"]["labels"]["app"] = "first"
        _affinity(pod)["podAffinity"] = {REQUIRED: [own]}


def anti_affinity(at: World, pod: Object) -> None:
    _affinity(pod)["podAntiAffinity"] = {REQUIRED: [_term(at) for _ in range(at.dice.choice((1, 1, 2)))]}


def theirs(at: World, pod: Object) -> None:
    """It asks for nothing: only what others hold against it can keep it off."""


def spread(at: World, pod: Object) -> None:
    dice, constraints = at.dice, []
    for key in dice.sample(at.keys, dice.choice((1, 1, 1, 2))):
        constraint: Object = {
            "maxSkew": dice.choice((1, 1, 2)),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
        }
        if dice.random() < 0.95:
            constraint["labelSelector"] = _selector(dice)
            if dice.random() < 0.25:
                constraint["matchLabelKeys"] = [dice.choice(("hash", "absent"))]
        if dice.random() < 0.3:
            constraint["minDomains"] = dice.randint(1, 4)
        if dice.random() < 0.5:
            constraint["nodeAffinityPolicy"] = dice.choice(("Honor", "Ignore"))
        if dice.random() < 0.5:
            constraint["nodeTaintsPolicy"] = dice.choice(("Honor", "Ignore"))
        constraints.append(constraint)
    if dice.random() < 0.2:
        constraints.append({**constraint, "topologyKey": at.key("soft"), "whenUnsatisfiable": "ScheduleAnyway"})
        constraints[-1].pop("minDomains", None)
    pod["spec"]["topologySpreadConstraints"] = constraints
