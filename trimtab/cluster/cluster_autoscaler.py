"""The cluster autoscaler's status and flags, and the node groups that may add a node unlike all present ones.

The status is the key `status` of the ConfigMap `kube-system/cluster-autoscaler-status`. It is YAML since version 1.30
and plain text before; the content shows which. The flags are the arguments of the autoscaler's pod, where that pod is
visible. What is not known is reported as unknown, not assumed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache

import yaml

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster import timestamps as moments
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_parser import LOADER

STATUS_NAMESPACE, STATUS_NAME = f.NAMESPACE.default, f.STATUS_CONFIG_MAP.default
"""The default namespace and name of the status ConfigMap; the autoscaler's flags `--namespace` and
`--status-config-map-name` change them."""
UPDATED_ANNOTATION = "cluster-autoscaler.kubernetes.io/last-updated"
THRESHOLD_FLAG, GPU_THRESHOLD_FLAG = f.THRESHOLD.name, f.GPU_THRESHOLD.name
MAX_SILENCE_SECONDS = 120
"""Seconds without a status update after which the autoscaler counts as stopped; a running one updates its status every
ten seconds."""
IDLE_STATES = frozenset({"", "NotNeeded", "NoActivity"})
"""The values of `scaleUp` in the status that mean that no node is being added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupStatus:
    """The status of one node group; `name` is the cloud provider's name for the group."""

    name: str
    healthy: bool
    scale_up: str
    """The group's scale-up state: Needed, NotNeeded, InProgress, NoActivity or Backoff; empty if the status does not
    say."""
    target: int | None = None
    min_size: int | None = None
    max_size: int | None = None
    registered: int | None = None
    """The number of the group's nodes that are registered with the API server, or None if the status does not say."""
    candidates: int = 0
    """The number of the group's nodes that the autoscaler intends to remove."""

    @property
    def may_bring_unseen_nodes(self) -> bool:
        """Whether the autoscaler may add a node whose labels and resources are unlike those of every present node. True
        if all of these hold:

        - the group has no node now, as far as the status says;
        - its maximum size is not 0;
        - the cloud can provide its nodes: the group is not in Backoff.
        """
        node_count = self.target if self.registered is None else self.registered
        return not node_count and self.max_size != 0 and self.scale_up != "Backoff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """The state of a cluster autoscaler: its health, its node groups, and the flags that change a plan."""

    healthy: bool = True
    scale_up: str = ""
    """The scale-up state of the whole cluster."""
    groups: tuple[NodeGroupStatus, ...] = ()
    updated: Seconds | None = None
    """When the autoscaler last updated its status, or None if that time cannot be parsed."""
    threshold: int = 50
    """A percentage: the autoscaler removes a node if less than this share of its resources is requested
    (`--scale-down-utilization-threshold`)."""
    gpu_threshold: int = 50
    """The scale-down threshold, in percent, for nodes with GPUs. On these nodes only requests for GPUs count
    (`--scale-down-gpu-utilization-threshold`)."""
    scale_down: bool = True
    restarting: bool = False
    """Whether the autoscaler has just deleted its status, as it does when it stops. The other fields then keep their
    last values."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flag → value as written on the autoscaler's command line; a flag that is not there has its default."""
    name: str = ""
    """NAMESPACE/NAME of the ConfigMap with the status; empty if only one autoscaler is known."""
    members: tuple["Autoscaler", ...] = ()
    """The autoscalers that this value sums up, if a cluster has several; empty for a single one."""

    @property
    def each(self) -> "tuple[Autoscaler, ...]":
        """The autoscalers one by one: the members, or this one alone."""
        return self.members or (self,)

    @property
    def ignores_daemon_sets(self) -> bool:
        """Whether the autoscaler leaves out the pods of DaemonSets when it compares a node with its threshold."""
        return f.IGNORE_DAEMON_SETS.is_true_in(self.flags)

    @property
    def ignores_mirror_pods(self) -> bool:
        """Whether the autoscaler leaves out static pods when it compares a node with its threshold."""
        return f.IGNORE_MIRROR_PODS.is_true_in(self.flags)

    def is_silent(self, now: Seconds | None) -> bool:
        """Returns whether the autoscaler has not updated its status for two minutes. An update whose time cannot be
        read counts as missing. So does an update from more than two minutes in the future, because the clocks then
        differ too much to compute its age."""
        return now is not None and (self.updated is None or abs(now - self.updated) > MAX_SILENCE_SECONDS)

    def silence_reason(self, now: Seconds) -> str:
        """Returns a sentence that says why the autoscaler counts as silent: it has not reported for two minutes, or
        reports a time in the future."""
        ahead = self.updated is not None and self.updated > now
        return (
            "the cluster autoscaler reports a time in the future, so its clock or Trimtab's clock is wrong"
            if ahead
            else "the cluster autoscaler has not reported for two minutes"
        )

    def groups_of_pool(self, pool: str) -> tuple[NodeGroupStatus, ...]:
        """Returns the node groups of a pool, found by their names."""
        return tuple(group for group in self.groups if is_group_of_pool(group, pool))

    def min_nodes_of_pool(self, pool: str) -> int:
        """Returns the number of nodes below which the autoscaler does not shrink the pool's groups: the sum of their
        minimum sizes. An unknown minimum counts as 0."""
        return sum(group.min_size or 0 for group in self.groups_of_pool(pool))

    @property
    def busy_groups(self) -> tuple[NodeGroupStatus, ...]:
        """The groups to which nodes are being added, and those that want nodes which the cloud cannot provide
        (Backoff)."""
        return tuple(group for group in self.groups if group.scale_up not in IDLE_STATES)


def is_group_of_pool(group: NodeGroupStatus, pool: str) -> bool:
    """Returns whether the group belongs to this pool: the group's name contains the pool's name, bounded by the ends of
    the name or by characters other than letters and digits."""
    # GKE names its groups gke-CLUSTER-POOL-HASH-grp. A part is delimited, so that pool `web` does not match `webapps`.
    return re.search(rf"(?:^|[^a-z0-9]){re.escape(pool)}(?:$|[^a-z0-9])", group.name, re.IGNORECASE) is not None


def parse_status(status: str, updated: str = "", arguments: Iterable[str] = ()) -> Autoscaler | Unreadable:
    """Returns the autoscaler's state from the text of its status, its last-updated annotation and the arguments of its
    process; Unreadable if the status cannot be parsed."""
    flags = parse_flags(arguments)
    # The form is recognized by content: the version of the autoscaler is not known.
    status_map = _parse_yaml_status(status)
    state = _from_yaml(status_map) if status_map is not None else _from_text_status(status)
    if state is None:
        return Unreadable(
            f"ConfigMap {STATUS_NAME}", "the YAML status of the cluster autoscaler 1.30 and later, or the older text"
        )
    time = parse_go_time(updated) or parse_go_time(str((status_map or {}).get("time", "")))
    return Autoscaler(
        healthy=state.healthy,
        scale_up=state.scale_up,
        groups=state.groups,
        updated=time,
        flags=flags,
        threshold=_parse_percent(f.THRESHOLD.text_in(flags)),
        gpu_threshold=_parse_percent(f.GPU_THRESHOLD.text_in(flags)),
        scale_down=f.ENABLED.is_true_in(flags),
    )


def format_status(autoscaler: Autoscaler) -> str:
    """Returns the status in the YAML form of 1.30 and later, with the fields that Trimtab reads."""
    groups = [_group_to_map(group) for group in autoscaler.groups]
    cluster_wide = {"health": {"status": _health_word(autoscaler.healthy)}, "scaleUp": {"status": autoscaler.scale_up}}
    time = {} if autoscaler.updated is None else {"time": moments.format_timestamp(autoscaler.updated)}
    return yaml.safe_dump({**time, "clusterWide": cluster_wide, "nodeGroups": groups}, sort_keys=False)


def _group_to_map(group: NodeGroupStatus) -> dict[str, object]:
    sizes = {"cloudProviderTarget": group.target, "minSize": group.min_size, "maxSize": group.max_size}
    counts = {} if group.registered is None else {"nodeCounts": {"registered": {"total": group.registered}}}
    known_sizes = {name: n for name, n in sizes.items() if n is not None}
    return {
        "name": group.name,
        "health": {"status": _health_word(group.healthy), **counts, **known_sizes},
        "scaleUp": {"status": group.scale_up},
        "scaleDown": {"candidates": group.candidates},
    }


def _health_word(healthy: bool) -> str:
    return "Healthy" if healthy else "Unhealthy"


def parse_go_time(text: str) -> Seconds | None:
    """Returns the time that is written in Go's format ("2026-01-02 15:04:05.999999999 +0000 UTC") or in RFC 3339, or
    None if the text is in neither. Fractions of a second and the zone's name are ignored."""
    match = re.match(r"\s*(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?", text)
    if match is None:
        return None
    day, clock, zone = match.groups()
    return int(datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in (None, 'Z') else zone}").timestamp())


def parse_flags(arguments: Iterable[str]) -> dict[str, str]:
    """Returns flag → value. An argument may be written `--flag=value`, `--flag value`, or `--flag` alone, which means
    true."""
    flags: dict[str, str] = {}
    valueless = ""
    for argument in arguments:
        if argument.startswith("-"):
            name, has_value, value = argument.lstrip("-").partition("=")
            flags[name] = value if has_value else "true"
            # The next argument is this flag's value unless it begins with a dash.
            valueless = "" if has_value else name
        elif valueless:
            flags[valueless], valueless = argument, ""
    return flags


def with_options(autoscaler: Autoscaler, options: Mapping[str, str]) -> Autoscaler:
    """Returns the autoscaler's state, in which the options of one node group replace the autoscaler's flags. `options`:
    name of the flag → value."""
    if not options:
        return autoscaler
    return replace(
        autoscaler,
        flags={**autoscaler.flags, **options},
        threshold=_parse_percent(options[THRESHOLD_FLAG]) if THRESHOLD_FLAG in options else autoscaler.threshold,
        gpu_threshold=(
            _parse_percent(options[GPU_THRESHOLD_FLAG]) if GPU_THRESHOLD_FLAG in options else autoscaler.gpu_threshold
        ),
        members=tuple(with_options(member, options) for member in autoscaler.members),
    )


def split_status_names(text: str) -> tuple[str, ...]:
    """Returns the names of status ConfigMaps in a text that separates them by commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip())) or (STATUS_NAME,)


def wrong_flags(arguments: Iterable[str]) -> list[str]:
    """Returns a sentence for each flag that the user gave and whose value cannot be parsed."""
    words = list(arguments)
    wrong = [f"{words[0]!r} is not a flag"] if words and not words[0].startswith("-") else []
    flags = parse_flags(words)
    wrong += [
        f"--{flag.name} must be {flag.kind}, not {flags[flag.name]!r}"
        for flag in f.OBEYED_FLAGS
        if flag.name in flags and not flag.is_valid(flags[flag.name])
    ]
    return [*wrong, *misspelt_flags(flags)]


def misspelt_flags(flags: Iterable[str]) -> list[str]:
    """Returns a sentence for each flag that does not exist but resembles one that Trimtab reads. To ignore such a flag
    would change the plan without notice."""
    names = sorted(name for name in flags if name not in f.FLAGS)
    # A high cutoff: existing flags resemble each other, too.
    near = ((name, get_close_matches(name, _OBEYED_NAMES, 1, 0.85)) for name in names)
    return [f"--{name} is not a flag; did you mean --{match}?" for name, matches in near for match in matches]


_OBEYED_NAMES = tuple(flag.name for flag in f.OBEYED_FLAGS)


def autoscaler_from_flags(arguments: Iterable[str], updated: Seconds | None) -> Autoscaler:
    """Returns the state of an autoscaler of which only the flags are known. It is assumed to be healthy and idle, and
    to have updated its status just now."""
    arguments = tuple(arguments)
    flags = parse_flags(arguments)
    return Autoscaler(
        updated=updated,
        flags=flags,
        groups=groups_from_flags(arguments),
        threshold=_parse_percent(f.THRESHOLD.text_in(flags)),
        gpu_threshold=_parse_percent(f.GPU_THRESHOLD.text_in(flags)),
        scale_down=f.ENABLED.is_true_in(flags),
    )


def groups_from_flags(arguments: Iterable[str]) -> tuple[NodeGroupStatus, ...]:
    """Returns the node groups of the flags `--nodes=MIN:MAX:NAME`, of which a command line may have several. A value of
    another form is left out."""
    groups, is_value = [], False
    for argument in arguments:
        name, has_value, value = argument.lstrip("-").partition("=")
        is_flag = argument.startswith("-") and name == f.NODES.name
        if (is_flag and has_value) or is_value:
            size = re.fullmatch(r"(\d+):(\d+):(.+)", value if is_flag else argument)
            if size is not None:
                groups.append(
                    NodeGroupStatus(
                        name=size[3], healthy=True, scale_up="", min_size=int(size[1]), max_size=int(size[2])
                    )
                )
        is_value = is_flag and not has_value
    return tuple(groups)


def _parse_percent(text: str) -> int:
    """Returns a share such as 0.5 as a percentage, 50. Further digits are cut, not rounded. If the text is not a share,
    returns the default, 50."""
    whole, _, fraction = text.partition(".")
    digits = (fraction + "00")[:2]
    return int(whole or 0) * 100 + int(digits) if (whole + digits).isdigit() else 50


def _parse_yaml_status(status: str) -> dict[str, object] | None:
    try:
        status_map = yaml.load(status, LOADER)  # noqa: S506  a safe one
    except (yaml.YAMLError, ValueError):  # ValueError: the form of a timestamp, but not a valid time
        return None
    return (
        status_map
        if isinstance(status_map, dict) and ("clusterWide" in status_map or "nodeGroups" in status_map)
        else None
    )


def _from_yaml(status_map: Mapping[str, object]) -> Autoscaler:
    cluster_wide = _as_map(status_map.get("clusterWide"))
    groups = status_map.get("nodeGroups")
    return Autoscaler(
        # While `autoscalerStatus` is Initializing, the status has no health yet.
        healthy=str(status_map.get("autoscalerStatus", "Running")) == "Running"
        and _as_map(cluster_wide.get("health")).get("status", "Healthy") == "Healthy",
        scale_up=str(_as_map(cluster_wide.get("scaleUp")).get("status", "")),
        groups=tuple(_group_from_map(_as_map(group)) for group in (groups if isinstance(groups, list) else ())),
    )


def _group_from_map(group_map: Mapping[str, object]) -> NodeGroupStatus:
    health = _as_map(group_map.get("health"))
    return NodeGroupStatus(
        name=str(group_map.get("name", "")),
        healthy=health.get("status", "Healthy") == "Healthy",
        scale_up=str(_as_map(group_map.get("scaleUp")).get("status", "")),
        target=_as_int(health.get("cloudProviderTarget")),
        min_size=_as_int(health.get("minSize")),
        max_size=_as_int(health.get("maxSize")),
        registered=_as_int(_as_map(_as_map(health.get("nodeCounts")).get("registered")).get("total")),
        candidates=_as_int(_as_map(group_map.get("scaleDown")).get("candidates")) or 0,
    )


def _as_map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _as_int(value: object) -> int | None:
    # The status is YAML 1.1, where `on` and `yes` are booleans.
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _from_text_status(status: str) -> Autoscaler | None:
    """Returns the state from the text status of versions before 1.30, or None if it has no such form. The text has a
    part `Cluster-wide:` and a part `NodeGroups:`, with lines for Name, Health, ScaleUp and ScaleDown."""
    if "Cluster-wide:" not in status:
        return None
    cluster_wide, _, rest = status.partition("NodeGroups:")
    groups = ["Name:" + part for part in rest.split("Name:")[1:]]
    return Autoscaler(
        healthy=_line_value(cluster_wide, "Health").startswith("Healthy"),
        scale_up=_first_word(_line_value(cluster_wide, "ScaleUp")),
        groups=tuple(_group_from_text(part) for part in groups),
    )


def _group_from_text(part: str) -> NodeGroupStatus:
    health = _line_value(part, "Health")
    return NodeGroupStatus(
        name=_first_word(_line_value(part, "Name")),
        healthy=health.startswith("Healthy"),
        scale_up=_first_word(_line_value(part, "ScaleUp")),
        target=_number_after(health, "cloudProviderTarget"),
        min_size=_number_after(health, "minSize"),
        max_size=_number_after(health, "maxSize"),
        registered=_number_after(health, "registered"),
        candidates=_number_after(_line_value(part, "ScaleDown"), "candidates") or 0,
    )


def _line_value(text: str, name: str) -> str:
    match = re.search(rf"^\s*{name}:\s*(.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else ""


def _first_word(text: str) -> str:
    return text.split(" ", 1)[0].split("(", 1)[0]


def _number_after(text: str, name: str) -> int | None:
    match = re.search(rf"{name}=(-?\d+)", text)
    return int(match.group(1)) if match else None


MAX_STATUS_CHARACTERS = 1 << 20
"""A longer status is not parsed. The API server stores no ConfigMap of that size, so the text has another origin."""


def growing_groups_of_any(maps: Iterable[ConfigMap]) -> tuple[str, ...] | None:
    """Returns the names of the groups that have no node and may get one (see `growing_groups`), or None if the groups
    are unknown.

    They are read from the status ConfigMap among `maps`. Only a ConfigMap with the default namespace and name is used,
    because any other could be a user's own."""
    place = (STATUS_NAMESPACE, STATUS_NAME)
    status = next(
        (config_map for config_map in maps if (config_map.metadata.namespace, config_map.metadata.name) == place), None
    )
    return None if status is None else growing_groups(status)


def growing_groups(config_map: ConfigMap) -> tuple[str, ...] | None:
    """Returns the names of the groups that have no node and may get one, or None if the status cannot be parsed, so
    that the groups are unknown."""
    status = config_map.data.get("status", "")
    return None if len(status) > MAX_STATUS_CHARACTERS else _names_of_growing_groups(_TIMES.sub("", status))


# The autoscaler writes its status every ten seconds, and mostly only the timestamps differ: without them `lru_cache`
# answers.
_TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\"']*")


@lru_cache(maxsize=2)
def _names_of_growing_groups(status: str) -> tuple[str, ...] | None:
    autoscaler = parse_status(status)
    if not isinstance(autoscaler, Autoscaler):
        return None
    return tuple(sorted(group.name for group in autoscaler.groups if group.may_bring_unseen_nodes))
