"""What does the cluster autoscaler say of itself?

Its status ConfigMap (`kube-system/cluster-autoscaler-status`, key `status`): YAML since 1.30, text before, told
apart by content. Its flags, where its pod can be seen. What is not told is named, not assumed.

Which node groups may get a node of a kind that nobody has seen, by what the cluster autoscaler says of itself?
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache

import yaml

from trimtab.cluster import timestamps as moments
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_parser import LOADER

NAMESPACE, NAME = "kube-system", "cluster-autoscaler-status"
"""Where it writes its status, unless its flags `--namespace` and `--status-config-map-name` say otherwise."""
UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"
THRESHOLD, ENABLED = "scale-down-utilization-threshold", "scale-down-enabled"
GPU_THRESHOLD = "scale-down-gpu-utilization-threshold"
IGNORE_DAEMON_SETS, IGNORE_MIRROR_PODS = "ignore-daemonsets-utilization", "ignore-mirror-pods-utilization"
READ_FLAGS = (
    THRESHOLD, GPU_THRESHOLD, ENABLED, IGNORE_DAEMON_SETS, IGNORE_MIRROR_PODS,
    "scale-down-unneeded-time", "scale-down-unready-time", "scale-down-delay-after-add",
)  # fmt: skip
"""The flags that change a plan, or how long an empty node is waited for."""
UNREAD_FLAGS = frozenset((
    "scale-down-candidates-pool-min-count", "scale-down-candidates-pool-ratio", "scale-down-delay-after-delete",
    "scale-down-delay-after-failure", "scale-down-delay-type-local", "scale-down-non-empty-candidates-count",
    "scale-down-simulation-timeout", "scale-down-unready-enabled",
))  # fmt: skip
"""Flags of its own with names like those that are read (cluster-autoscaler config/flags, 1.34)."""
SILENCE = 120
"""Seconds without a report after which it is taken for dead; it writes every ten."""
CALM = frozenset({"", "NotNeeded", "NoActivity"})
"""scaleUp states in which nothing is being added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupStatus:
    """A node group, by the cloud's name."""

    name: str
    healthy: bool
    scale_up: str
    """Needed, NotNeeded, InProgress, NoActivity, Backoff; empty where it is not told."""
    target: int | None = None
    min_size: int | None = None
    max_size: int | None = None
    registered: int | None = None
    """Nodes of it that are there."""
    candidates: int = 0
    """Nodes it means to remove itself."""

    @property
    def may_bring_unseen_nodes(self) -> bool:
        """May the autoscaler make a node of a kind that nobody has seen? Where:

        - the group has no node now, as far as it tells;
        - it may have some;
        - nodes of it can be had: it is not backing off.
        """
        there = self.target if self.registered is None else self.registered
        return not there and self.max_size != 0 and self.scale_up != "Backoff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    healthy: bool = True
    scale_up: str = ""
    """Of the whole cluster."""
    groups: tuple[NodeGroupStatus, ...] = ()
    updated: Seconds | None = None
    """When it last reported; None where that cannot be read."""
    threshold: int = 50
    """Percent of requests below which it removes a node itself (--scale-down-utilization-threshold)."""
    gpu_threshold: int = 50
    """The same of GPUs, which alone count where a node has some (--scale-down-gpu-utilization-threshold)."""
    scale_down: bool = True
    restarting: bool = False
    """It took its status away not long ago, as it does when it ends: what it said last is all that is known."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """As given; a flag that is absent has its default."""

    @property
    def ignores_daemon_sets(self) -> bool:
        """Are the pods of DaemonSets left out when it compares a node with its threshold?"""
        return is_true(self.flags.get(IGNORE_DAEMON_SETS, "false"))

    @property
    def ignores_mirror_pods(self) -> bool:
        """The same of static pods."""
        return is_true(self.flags.get(IGNORE_MIRROR_PODS, "false"))

    def silent(self, now: Seconds | None) -> bool:
        """Has it not reported for two minutes? A report without a time is no report, nor is one of the future:
        by clocks that differ so much nobody can tell whether it still lives."""
        return now is not None and (self.updated is None or abs(now - self.updated) > SILENCE)

    def silence(self, now: Seconds) -> str:
        """The same in words."""
        ahead = self.updated is not None and self.updated > now
        return "reports of the future: its clock or ours is wrong" if ahead else "has not reported for two minutes"

    def of(self, pool: str) -> tuple[NodeGroupStatus, ...]:
        """The groups of a pool."""
        return tuple(group for group in self.groups if belongs(group, pool))

    def least(self, pool: str) -> int:
        """Nodes it keeps in the pool's groups, as far as it tells; 0 where it tells of no minimum."""
        return sum(group.min_size or 0 for group in self.of(pool))

    @property
    def busy_groups(self) -> tuple[NodeGroupStatus, ...]:
        """Groups in which nodes are being added, or cannot be had (Backoff)."""
        return tuple(group for group in self.groups if group.scale_up not in CALM)


def belongs(group: NodeGroupStatus, pool: str) -> bool:
    """Is it a group of this pool? Its name has the pool's name as a part of its own."""
    return re.search(rf"(?:^|[^a-z0-9]){re.escape(pool)}(?:$|[^a-z0-9])", group.name, re.IGNORECASE) is not None


def read(status: str, updated: str = "", arguments: Iterable[str] = ()) -> Autoscaler | Unreadable:
    """From the status text, the last-updated annotation and the process' arguments."""
    flags = flags_of(arguments)
    found = _yaml(status)
    made = _from_yaml(found) if found is not None else _from_text(status)
    if made is None:
        return Unreadable(f"ConfigMap {NAME}", "neither the YAML status of 1.30 and later nor the text before it")
    time = moment(updated) or moment(str((found or {}).get("time", "")))
    return Autoscaler(
        healthy=made.healthy, scale_up=made.scale_up, groups=made.groups, updated=time, flags=flags,
        threshold=_percent(flags.get(THRESHOLD, "0.5")), gpu_threshold=_percent(flags.get(GPU_THRESHOLD, "0.5")),
        scale_down=flags.get(ENABLED, "true") != "false",
    )  # fmt: skip


def written(found: Autoscaler) -> str:
    """As the status of 1.30 and later that reads as this one; no more is in it than we read."""
    groups = [_told_group(group) for group in found.groups]
    whole = {"health": {"status": _health(found.healthy)}, "scaleUp": {"status": found.scale_up}}
    time = {} if found.updated is None else {"time": moments.written(found.updated)}
    return yaml.safe_dump({**time, "clusterWide": whole, "nodeGroups": groups}, sort_keys=False)


def _told_group(group: NodeGroupStatus) -> dict[str, object]:
    sizes = {"cloudProviderTarget": group.target, "minSize": group.min_size, "maxSize": group.max_size}
    counts = {} if group.registered is None else {"nodeCounts": {"registered": {"total": group.registered}}}
    told = {name: n for name, n in sizes.items() if n is not None}
    return {
        "name": group.name,
        "health": {"status": _health(group.healthy), **counts, **told},
        "scaleUp": {"status": group.scale_up},
        "scaleDown": {"candidates": group.candidates},
    }


def _health(healthy: bool) -> str:
    return "Healthy" if healthy else "Unhealthy"


def moment(text: str) -> Seconds | None:
    """Go's time text ("2026-01-02 15:04:05.999999999 +0000 UTC"): fraction and zone name are cut before reading."""
    found = re.match(r"\s*(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?", text)
    if found is None:
        return None
    day, clock, zone = found.groups()
    return int(datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in (None, 'Z') else zone}").timestamp())


def flags_of(arguments: Iterable[str]) -> dict[str, str]:
    """`--flag=value`, `--flag value`, and `--flag` alone, which is true."""
    found: dict[str, str] = {}
    waiting = ""
    for argument in arguments:
        if argument.startswith("-"):
            name, has_value, value = argument.lstrip("-").partition("=")
            found[name] = value if has_value else "true"
            waiting = "" if has_value else name
        elif waiting:
            found[waiting], waiting = argument, ""
    return found


def with_options(found: Autoscaler, options: Mapping[str, str]) -> Autoscaler:
    """The autoscaler as it treats a node group whose own options, by the names of the flags, differ from the flags."""
    if not options:
        return found
    return replace(
        found, flags={**found.flags, **options},
        threshold=_percent(options[THRESHOLD]) if THRESHOLD in options else found.threshold,
        gpu_threshold=_percent(options[GPU_THRESHOLD]) if GPU_THRESHOLD in options else found.gpu_threshold,
    )  # fmt: skip


def is_true(text: str) -> bool:
    """Whether Go's strconv.ParseBool takes it for true."""
    return text in ("1", "t", "T", "true", "TRUE", "True")


def wrong_flags(arguments: Iterable[str]) -> list[str]:
    """What a person gave as flags and we cannot read, in words."""
    words = list(arguments)
    wrong = [f"{words[0]!r} is no flag"] if words and not words[0].startswith("-") else []
    flags = flags_of(words)
    for name in (THRESHOLD, GPU_THRESHOLD):
        threshold = flags.get(name, "0.5")
        if re.fullmatch(r"[01]?\.?\d*", threshold) is None or not any(c.isdigit() for c in threshold):
            wrong.append(f"--{name} is a number such as 0.5, not {threshold!r}")
    enabled = flags.get(ENABLED, "true")
    if enabled not in ("true", "false"):
        wrong.append(f"--{ENABLED} is true or false, not {enabled!r}")
    return [*wrong, *misspelt_flags(flags)]


def misspelt_flags(flags: Iterable[str]) -> list[str]:
    """Those that are no flag and look like one that is read, in words: left out they would change the plan unseen."""
    names = sorted(name for name in flags if name not in READ_FLAGS and name not in UNREAD_FLAGS)
    near = ((name, get_close_matches(name, READ_FLAGS, 1, 0.85)) for name in names)
    return [f"--{name} is no flag; did you mean --{match}?" for name, matches in near for match in matches]


def by_flags(arguments: Iterable[str], updated: Seconds | None) -> Autoscaler:
    """Only its flags are known: it is taken for healthy, quiet, and to have reported just now."""
    flags = flags_of(arguments)
    return Autoscaler(
        updated=updated, flags=flags, threshold=_percent(flags.get(THRESHOLD, "0.5")),
        gpu_threshold=_percent(flags.get(GPU_THRESHOLD, "0.5")),
        scale_down=flags.get(ENABLED, "true") != "false",
    )  # fmt: skip


def _percent(text: str) -> int:
    whole, _, fraction = text.partition(".")
    digits = (fraction + "00")[:2]
    return int(whole or 0) * 100 + int(digits) if (whole + digits).isdigit() else 50


def _yaml(status: str) -> dict[str, object] | None:
    try:
        found = yaml.load(status, LOADER)  # noqa: S506  a safe one
    except (yaml.YAMLError, ValueError):  # ValueError: what has the form of a time and is none
        return None
    return found if isinstance(found, dict) and ("clusterWide" in found or "nodeGroups" in found) else None


def _from_yaml(found: Mapping[str, object]) -> Autoscaler:
    whole = _map(found.get("clusterWide"))
    groups = found.get("nodeGroups")
    return Autoscaler(
        # `Initializing` comes without any health: nothing has been judged yet.
        healthy=str(found.get("autoscalerStatus", "Running")) == "Running"
        and _map(whole.get("health")).get("status", "Healthy") == "Healthy",
        scale_up=str(_map(whole.get("scaleUp")).get("status", "")),
        groups=tuple(_group(_map(group)) for group in (groups if isinstance(groups, list) else ())),
    )


def _group(found: Mapping[str, object]) -> NodeGroupStatus:
    health = _map(found.get("health"))
    return NodeGroupStatus(
        name=str(found.get("name", "")), healthy=health.get("status", "Healthy") == "Healthy",
        scale_up=str(_map(found.get("scaleUp")).get("status", "")), target=_int(health.get("cloudProviderTarget")),
        min_size=_int(health.get("minSize")), max_size=_int(health.get("maxSize")),
        registered=_int(_map(_map(health.get("nodeCounts")).get("registered")).get("total")),
        candidates=_int(_map(found.get("scaleDown")).get("candidates")) or 0,
    )  # fmt: skip


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _from_text(status: str) -> Autoscaler | None:
    """`Cluster-wide:` and `NodeGroups:` with lines Name, Health, ScaleUp, ScaleDown."""
    if "Cluster-wide:" not in status:
        return None
    whole, _, rest = status.partition("NodeGroups:")
    groups = ["Name:" + part for part in rest.split("Name:")[1:]]
    return Autoscaler(
        healthy=_line(whole, "Health").startswith("Healthy"), scale_up=_word(_line(whole, "ScaleUp")),
        groups=tuple(_text_group(part) for part in groups),
    )  # fmt: skip


def _text_group(part: str) -> NodeGroupStatus:
    health = _line(part, "Health")
    return NodeGroupStatus(
        name=_word(_line(part, "Name")), healthy=health.startswith("Healthy"), scale_up=_word(_line(part, "ScaleUp")),
        target=_number(health, "cloudProviderTarget"), min_size=_number(health, "minSize"),
        max_size=_number(health, "maxSize"),
        registered=_number(health, "registered"), candidates=_number(_line(part, "ScaleDown"), "candidates") or 0,
    )  # fmt: skip


def _line(text: str, name: str) -> str:
    found = re.search(rf"^\s*{name}:\s*(.*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _word(text: str) -> str:
    return text.split(" ", 1)[0].split("(", 1)[0]


def _number(text: str, name: str) -> int | None:
    found = re.search(rf"{name}=(-?\d+)", text)
    return int(found.group(1)) if found else None


MAX_STATUS_CHARACTERS = 1 << 20
"""A status beyond it is not read: an API server stores no ConfigMap that is larger."""


def growing_groups_of_any(maps: Iterable[ConfigMap]) -> tuple[str, ...] | None:
    """What the status among these says, where it lies as it does by default: nobody else is believed."""
    where = (NAMESPACE, NAME)
    status = next((found for found in maps if (found.metadata.namespace, found.metadata.name) == where), None)
    return None if status is None else growing_groups(status)


def growing_groups(found: ConfigMap) -> tuple[str, ...] | None:
    """The names of groups without a node that may get one, of its status ConfigMap; None where that cannot be read:
    then nobody tells which groups there are."""
    status = found.data.get("status", "")
    return None if len(status) > MAX_STATUS_CHARACTERS else _read(_TIMES.sub("", status))


_TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\"']*")
"""It is written every ten seconds, and mostly nothing else differs."""


@lru_cache(maxsize=2)
def _read(status: str) -> tuple[str, ...] | None:
    autoscaler = read(status)
    if not isinstance(autoscaler, Autoscaler):
        return None
    return tuple(sorted(group.name for group in autoscaler.groups if group.may_bring_unseen_nodes))
