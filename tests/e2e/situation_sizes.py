"""What a pod asks for, in all the ways there are."""

from __future__ import annotations

from random import Random

from tests.e2e.situation import GPU, HUGE, OVERHEADS, Object, World, container


def some(dice: Random) -> Object:
    drawn: Object = {}
    if dice.random() < 0.8:
        drawn["cpu"] = dice.choice(("100m", "0.5", "1", "1900m", "0"))
    if dice.random() < 0.8:
        drawn["memory"] = dice.choice(("128Mi", "1Gi", "1500M", "0", "1e9"))
    return drawn


def resources(at: World, pod: Object) -> None:
    at.dice.choice((plain, storage, extended, init, init, pod_level, overhead))(at, pod)


def plain(at: World, pod: Object) -> None:
    pod["spec"]["containers"] = [container(f"c{n}", some(at.dice)) for n in range(at.dice.randint(1, 3))]


def storage(at: World, pod: Object) -> None:
    amount = at.dice.choice(("1Gi", "4Gi", "6Gi", "11Gi"))
    pod["spec"]["containers"] = [container("main", {**some(at.dice), "ephemeral-storage": amount})]


def extended(at: World, pod: Object) -> None:
    what = {GPU: at.dice.choice(("1", "2"))} if at.dice.random() < 0.6 else {HUGE: at.dice.choice(("32Mi", "64Mi"))}
    pod["spec"]["containers"] = [container("main", {"cpu": "50m", "memory": "32Mi", **what})]


def init(at: World, pod: Object) -> None:
    """Init containers and sidecars in any order: what counts is who runs beside whom."""
    starting = []
    for number in range(at.dice.randint(1, 4)):
        container_report = container(f"i{number}", some(at.dice))
        starting.append({**container_report, "restartPolicy": "Always"} if at.dice.random() < 0.5 else container_report)
    pod["spec"]["initContainers"] = starting
    if at.dice.random() < 0.5:
        plain(at, pod)
    if at.dice.random() < 0.2:
        overhead(at, pod)


def pod_level(at: World, pod: Object) -> None:
    """The pod's own requests stand instead of its containers', which may be no larger together."""
    dice = at.dice
    pod["spec"]["containers"] = [container(f"c{n}", {"cpu": "100m", "memory": "100Mi"}) for n in range(2)]
    pod["spec"]["resources"] = {"requests": {"cpu": dice.choice(("200m", "1", "2500m"))}}
    if dice.random() < 0.6:
        pod["spec"]["resources"]["requests"]["memory"] = dice.choice(("200Mi", "2Gi"))
    if dice.random() < 0.4:
        pod["spec"]["initContainers"] = [container("i", {"cpu": "150m", "memory": "50Mi"})]
    if dice.random() < 0.3:
        overhead(at, pod)


def overhead(at: World, pod: Object) -> None:
    pod["spec"]["runtimeClassName"] = at.dice.choice(list(OVERHEADS))


def slots(at: World, pod: Object) -> None:
    """Next to nothing, so that only a slot can lack."""
    pod["spec"]["containers"] = [{"name": "main", "image": "pause"}]
