"""What does the VPA's own recommender ask for, and how good is it in the week after? Compared with Trimtab's requests.

The recommender starts with checkpoints of two weeks of real machines (`scoring` has the same weeks): as if it had
watched them. Its programs are those of `tests/controlplane/modules/vpa`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import msgspec

from tests.bench.scoring import (
    FIT_DAYS,
    HELD_DAYS,
    ORIGINS,
    RULES,
    START,
    Points,
    Scored,
    is_chosen_on,
    mean_under,
    ours,
)
from tests.bench.scoring import all_episodes as count_episodes
from tests.bench.scoring import waste as pool_waste
from tests.bench.usage_series import machine_series
from tests.controlplane import modules
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object
from tests.e2e import real_vpa
from tests.e2e.ours import install_crd
from trimtab.cluster import quantity
from trimtab.histogram.time_buckets import DAY
from trimtab.histogram.vpa import AggregateContainerState, CheckpointHistory, Histogram, encode_checkpoint
from trimtab.sizing.request import SizingSettings

API_VERSION = "autoscaling.k8s.io/v1"
ADAPTIVE = SizingSettings(rule=RULES["adaptive"], min_cpu=25, min_memory=250 << 20)


@dataclass(frozen=True, slots=True)
class MachineWeeks:
    """One machine of the trace: what it used before the request is made, and after."""

    name: str
    origin: int
    """Days after the beginning of the trace."""
    fit: Mapping[str, Points]
    """Resource → samples, here and below."""
    held: Mapping[str, Sequence[float]]


def read_weeks(count: int) -> list[MachineWeeks]:
    """Returns both origins of at most so many machines, of the half that no constant of ours was chosen on."""
    series = machine_series()
    names = sorted({name for name, _ in series if not is_chosen_on(name)})
    weeks = []
    for name, origin in product(names[:count], ORIGINS):
        cut = START + origin * DAY
        samples = {resource: series[name, resource] for resource in ("cpu", "memory")}
        fit = {key: [one for one in value if cut - FIT_DAYS * DAY <= one[0] < cut] for key, value in samples.items()}
        held = {key: [v for at, v in value if cut <= at < cut + HELD_DAYS * DAY] for key, value in samples.items()}
        weeks.append(MachineWeeks(name, origin, fit, held))
    return weeks


def create_checkpoint(weeks: MachineWeeks, name: str, today: int) -> Object:
    """Returns the VPA's checkpoint of a history that is moved until it ends with the day before `today`, which is
    counted since 1970: the recommender forgets what ended eight days ago."""
    shift = (today - (START // DAY + weeks.origin)) * DAY
    state = AggregateContainerState()
    for at, value in weeks.fit["cpu"]:
        state.add_cpu_sample(float(at + shift), value)
    for at, value in weeks.fit["memory"]:
        state.add_memory_sample(float(at + shift), value)
    assert isinstance(state.cpu, Histogram)
    assert isinstance(state.memory, Histogram)
    times = [at + shift for at, _ in weeks.fit["cpu"]]
    history = CheckpointHistory(cpu=state.cpu, memory=state.memory, first=times[0], last=times[-1], samples=len(times))
    return {
        "apiVersion": API_VERSION,
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": f"{name}-main"},
        "spec": {"vpaObjectName": name, "containerName": "main"},
        "status": msgspec.to_builtins(encode_checkpoint(history)),
    }


def measure_vpa(cluster: Cluster, folder: Path, count: int) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the figures of the VPA's targets, and of our requests for the same machines."""
    weeks = read_weeks(count)
    for definition in real_vpa.definitions():
        install_crd(cluster, definition)
    cluster.pool("sized", nodes=2, cpu="64", memory="256Gi")
    names = [f"m{number:03d}" for number in range(len(weeks))]
    for name, one in zip(names, weeks, strict=True):
        cluster.deployment(name, cpu="10m", memory="10Mi")
        cluster.create(real_vpa.autoscaler(name, mode="Off", recommenders=()))
        cluster.create(create_checkpoint(one, name, int(time.time()) // DAY))
    cluster.eventually(lambda: len(cluster.running()) == len(names), within=60, what="a pod of each machine")
    with real_vpa.default_recommender(cluster, folder):
        targets = [real_vpa.entry(real_vpa.until_used(cluster, name))["target"] for name in names]
    requests = [
        {
            "cpu": quantity.to_milli(target["cpu"]) / 1000,
            "memory": float(quantity.scheduler_value("memory", target["memory"])),
        }
        for target in targets
    ]
    scored = {
        resource: [
            Scored.of(
                one.name,
                resource,
                one.held[resource],
                {"vpa": theirs[resource], "ours": ours(resource, one.fit[resource], ADAPTIVE)},
            )
            for one, theirs in zip(weeks, requests, strict=True)
        ]
        for resource in ("cpu", "memory")
    }
    return _describe(scored, "vpa"), _describe(scored, "ours")


def _describe(scored: Mapping[str, Sequence[Scored]], rule: str) -> dict[str, str]:
    cpu, memory = scored["cpu"], scored["memory"]
    return {
        "machine_weeks": str(len(cpu)),
        "cpu_waste": f"{pool_waste(cpu, rule):.3f}",
        "cpu_short": f"{mean_under(cpu, rule):.4f}",
        "memory_waste": f"{pool_waste(memory, rule):.3f}",
        "memory_episodes": f"{count_episodes(memory, rule):.0f}",
    }


def vpa_key() -> str:
    """Returns name and version, as the figures have them."""
    return f"vpa-{modules.vertical_pod_autoscaler().version}"
