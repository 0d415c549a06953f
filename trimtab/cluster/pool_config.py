"""What does a pool's ConfigMap say?

One ConfigMap per pool, labelled `trimtab.dev/pool`, with the settings as YAML under `pool.yaml`. All mistakes are
told together. Every field is optional:

    preset: balanced             # careful | balanced | keen
    nodes: {labels: {team: web}} # default: the platform's pool label says the ConfigMap's pool name; or `nodes: all`
    goal: cost                   # cost | nodes
    mode: rehearse               # rehearse | act; `dryRun: true | false` says the same
    enabled: true
    underUsed: {cpu: 80, memory: 80, count: 1, for: 10m}          # percent of allocatable
    age: {node: 20m, receiver: 1m, pod: 0s}
    quiet: 10m
    pendingLimit: 1h
    keep: {nodes: 1, nodesPerZone: 0, spare: none,                # spare: none | node | zone
           headroom: {percent: 5, nodes: 0, largestPod: true}}
    pace: {drains: 1, evictionsPerHour: 200, openingsPerHour: 20, leastGain: 0}
    prices: {n2-standard-4: 0.2}                                  # dollars an hour
    schedulers: {my-bin-packer: pack}                             # spread | pack | unknown, by spec.schedulerName
    autoscaler: follow                                            # follow | lead
    lead: {maxThreshold: 50}                                      # percent
    groupOptions: {scaleDownUtilizationThreshold: 70, scaleDownUnneededTime: 20m}  # of the pool's own node group
    windows: [{days: [mon, tue], from: "22:00", to: "05:00", timeZone: Europe/Berlin}]
    optOut: {nodes: [example.com/keep], pods: []}
    protect: {singleReplicas: true, jobs: true, notReady: false,
              unready: budget,                                    # budget | workload
              criticalPods: without-budget}                       # always | without-budget | unless-safe-to-evict

A pool as the ConfigMap that somebody would write: the fields that differ from its preset, with comments.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from trimtab.cluster.config_error import MAX_MISTAKES, ConfigError, first_mistakes, nearest, shown
from trimtab.cluster.pool import LABEL, PRESETS, Goal, Pool, Precedence, ProtectCritical, ProtectUnready, Spare, preset
from trimtab.cluster.pool_schema import (
    GROUP_OPTIONS,
    InvalidValue,
    commitments,
    flag,
    group_option,
    labels,
    mode,
    one_of,
    percent,
    prices,
    schedulers,
    span,
    texts,
    unless,
    whole,
    windows,
)
from trimtab.cluster.yaml_documents import Document, read
from trimtab.cluster.yaml_parser import Path

KEY = "pool.yaml"


@dataclass(frozen=True, slots=True)
class PoolReading:
    pools: tuple[Pool, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()
    notes: tuple[str, ...] = ()
    assumed: bool = False
    """No settings were found anywhere: the pools are those that nodes name, with a preset."""


@dataclass(slots=True)
class PoolReader:
    """Reads one document of settings, collecting mistakes."""

    document: Document
    mistakes: list[ConfigError] = field(default_factory=list)

    def section(self, value: Any, path: Path, known: Iterable[str]) -> Mapping[str, Any]:
        known = tuple(known)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong(InvalidValue(path, "a mapping", shown(value)))
            return {}
        for key in value:
            if len(self.mistakes) > MAX_MISTAKES:
                break
            if key not in known:
                self.wrong(InvalidValue((*path, key), f"one of {', '.join(known)}", shown(key), nearest(key, known)))
        return value

    def wrong(self, bad: InvalidValue) -> None:
        if len(self.mistakes) <= MAX_MISTAKES:  # one more than are told, so that more are known of
            self.mistakes.append(self.document.mistake(bad.path, bad.expected, bad.got, bad.todo))

    def take(
        self,
        found: Mapping[str, Any],
        path: Path,
        key: str,
        parse: Callable[[Any, Path], Any],
        into: dict[str, Any],
        name: str,
    ) -> None:
        """Into `into[name]` if the key is there and makes sense."""
        if key not in found:
            return
        try:
            into[name] = parse(found[key], (*path, key))
        except InvalidValue as bad:
            self.wrong(bad)


TABLE: Mapping[str, Mapping[str, tuple[str, Callable[[Any, Path], Any]]]] = {
    "": {
        "goal": ("goal", one_of(Goal)), "autoscaler": ("autoscaler", one_of(Precedence)),
        "dryRun": ("dry_run", flag), "mode": ("dry_run", mode),
        "enabled": ("enabled", flag), "quiet": ("quiet", span), "pendingLimit": ("pending_limit", span),
        "prices": ("prices", prices), "commitments": ("commitments", commitments),
        "windows": ("windows", windows), "schedulers": ("schedulers", schedulers),
    },
    "age": {"node": ("node_age", span), "receiver": ("receiver_age", span), "pod": ("min_pod_age", span)},
    "keep": {
        "nodes": ("min_nodes", whole()), "nodesPerZone": ("min_per_zone", whole()), "spare": ("spare", one_of(Spare)),
    },
    "pace": {
        "drains": ("drains", whole(1)), "evictionsPerHour": ("evictions_per_hour", whole(1)),
        "openingsPerHour": ("openings_per_hour", whole()), "leastGain": ("least_gain", whole()),
    },
    "lead": {"maxThreshold": ("lead_max_threshold", percent)},
    "groupOptions": {},
    "optOut": {"nodes": ("keep_nodes", texts), "pods": ("keep_pods", texts)},
    "protect": {
        "singleReplicas": ("single_replicas", unless), "jobs": ("jobs", unless), "notReady": ("not_ready", unless),
        "unready": ("unready", one_of(ProtectUnready)), "criticalPods": ("critical_pods", one_of(ProtectCritical)),
    },
}  # fmt: skip
"""Section → key → (field of `Pool`, how it is read)."""
EXTRA = {"keep": ("headroom",), "groupOptions": tuple(GROUP_OPTIONS)}
TOP = ("preset", "nodes", "underUsed", *TABLE[""], *(name for name in TABLE if name))


def settings(document: Document, name: str) -> tuple[Pool | None, list[ConfigError]]:
    """The pool of this name that the document describes; None when anything is wrong with it."""
    reader = PoolReader(document)
    top = reader.section(document.value, (), TOP)
    base = top.get("preset", "balanced")
    if not isinstance(base, str) or base not in PRESETS:
        reader.wrong(
            InvalidValue(("preset",), f"one of {', '.join(PRESETS)}", shown(base), nearest(str(base), PRESETS))
        )
        base = "balanced"
    pool, into = preset(base, name), {}  # type: Pool, dict[str, Any]
    for section, keys in TABLE.items():
        path: Path = (section,) if section else ()
        found = reader.section(top.get(section), path, (*keys, *EXTRA.get(section, ()))) if section else top
        for key, (attribute, parse) in keys.items():
            reader.take(found, path, key, parse, into, attribute)
    if "mode" in top and "dryRun" in top:
        reader.wrong(InvalidValue(("dryRun",), "mode or dryRun, not both", shown(top["dryRun"]), "leave dryRun out"))
    _headroom(reader, top, pool, into)
    _group_options(reader, top, into)
    _under(reader, top, pool, into)
    _nodes(reader, top, into)
    return (None if reader.mistakes else replace(pool, **into)), reader.mistakes


def _headroom(reader: PoolReader, top: Mapping[str, Any], pool: Pool, into: dict[str, Any]) -> None:
    keep = top.get("keep")
    if not isinstance(keep, dict) or "headroom" not in keep:
        return
    path: Path = ("keep", "headroom")
    found = reader.section(keep["headroom"], path, ("percent", "nodes", "largestPod"))
    parts: dict[str, Any] = {}
    reader.take(found, path, "percent", percent, parts, "percent")
    reader.take(found, path, "nodes", whole(), parts, "nodes")
    reader.take(found, path, "largestPod", flag, parts, "largest_pod")
    into["headroom"] = replace(pool.headroom, **parts)


def _group_options(reader: PoolReader, top: Mapping[str, Any], into: dict[str, Any]) -> None:
    value = top.get("groupOptions")
    if not isinstance(value, dict):
        return
    options: dict[str, Any] = {}
    for name, flag_name in GROUP_OPTIONS.items():
        reader.take(value, ("groupOptions",), name, group_option(name), options, flag_name)
    into["group_options"] = options


def _under(reader: PoolReader, top: Mapping[str, Any], pool: Pool, into: dict[str, Any]) -> None:
    """`count` and `for`; every other key is a resource with its percentage."""
    value = top.get("underUsed")
    if value is None:
        return
    if not isinstance(value, dict):
        reader.wrong(InvalidValue(("underUsed",), "a mapping of resources to percentages", shown(value)))
        return
    path: Path = ("underUsed",)
    reader.take(value, path, "count", whole(1), into, "under_count")
    reader.take(value, path, "for", span, into, "under_for")
    lines: dict[str, Any] = {}
    for key in sorted(set(value) - {"count", "for"}):
        if key in ("cpu", "memory", "pods", "ephemeral-storage") or "/" in key:
            reader.take(value, path, key, percent, lines, key)
        else:
            known = ("cpu", "memory", "pods", "ephemeral-storage", "count", "for")
            reader.wrong(InvalidValue((*path, key), "a resource, count or for", shown(key), nearest(key, known)))
    into["under"] = {**pool.under, **lines}


def _nodes(reader: PoolReader, top: Mapping[str, Any], into: dict[str, Any]) -> None:
    value = top.get("nodes")
    if value == "all":
        into["everything"] = True
    elif value is not None:
        found = reader.section(value, ("nodes",), ("labels",))
        reader.take(found, ("nodes",), "labels", labels, into, "labels")


def pools(documents: Iterable[Document]) -> PoolReading:
    """Every pool among the documents (ConfigMaps labelled as pools; others are not ours), in order of name."""
    found: dict[str, Pool] = {}
    mistakes: list[ConfigError] = []
    for document in documents:
        named = _pool_of(document)
        if named is None:
            continue
        name, text = named
        pool, wrong = _one(document, name, text)
        mistakes += wrong
        if pool is not None and name in found:
            mistakes.append(document.mistake(("metadata", "labels"), "a name no other pool has", name))
        elif pool is not None:
            found[name] = pool
    return PoolReading(tuple(found[name] for name in sorted(found)), tuple(mistakes))


def _pool_of(document: Document) -> tuple[str, object] | None:
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "ConfigMap":
        return None
    metadata = value.get("metadata")
    marks = metadata.get("labels") if isinstance(metadata, dict) else None
    name = marks.get(LABEL) if isinstance(marks, dict) else None
    data = value.get("data")
    return (name, data.get(KEY) if isinstance(data, dict) else None) if isinstance(name, str) and name else None


def _one(document: Document, name: str, text: object) -> tuple[Pool | None, list[ConfigError]]:
    if not isinstance(text, str):
        return None, [document.mistake(("data", KEY), "the pool's settings as YAML", shown(text))]
    over = _excess(text)
    if over:
        return None, [document.mistake(("data", KEY), "settings of one pool", over, "leave out what is no setting")]
    reading = read(f"{document.file} {document.entry} {KEY}", text.encode())
    if reading.mistakes:
        return None, first_mistakes(reading.mistakes)
    if not reading.documents:
        return preset("balanced", name), []
    if len(reading.documents) > 1:
        return None, [
            reading.documents[1].mistake((), "one document of settings", "another one", "write them into one")
        ]
    pool, mistakes = settings(reading.documents[0], name)
    return pool, first_mistakes(mistakes)


MAX_CHARACTERS = 64 * 1024
MAX_ENTRIES = 3_000
"""Lines, or entries in brackets. A pool with prices for every type of a large cloud has a third of it."""


def _excess(text: str) -> str:
    """What there is too much of to be one pool's settings; empty where there is not. Asked before YAML is read."""
    if len(text) > MAX_CHARACTERS:
        return f"{len(text)} characters, of at most {MAX_CHARACTERS}"
    entries = sum(map(text.count, "\n,[{:"))
    return f"{entries} lines and entries, of at most {MAX_ENTRIES}" if entries > MAX_ENTRIES else ""


NAME_PREFIX = "pool-"


def config_map(pool: Pool, namespace: str, comments: Sequence[str] = ()) -> dict[str, Any]:
    """The pool's ConfigMap. Raises ValueError for a pool with settings that `text` does not write."""
    metadata = {"name": NAME_PREFIX + pool.name, "namespace": namespace, "labels": {LABEL: pool.name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text(pool, comments)}}


def text(pool: Pool, comments: Sequence[str] = ()) -> str:
    """`pool.yaml` of a pool made from the preset `balanced`: enabled, nodes, underUsed, age and mode.

    Read again it is the same pool, unless another field differs from the preset: then it raises ValueError.
    """
    base = PRESETS["balanced"]
    known = ("name", "labels", "enabled", "dry_run", "under", "under_count", "under_for", "node_age")
    other = [name for name in Pool.__slots__ if name not in known and getattr(pool, name) != getattr(base, name)]
    if other:
        raise ValueError(f"pool {pool.name}: {', '.join(other)} cannot be written")
    under = {**pool.under, "count": pool.under_count, "for": f"{pool.under_for}s"}
    lines = [
        *(f"# {comment}" for comment in comments),
        "preset: balanced",
        f"mode: {'rehearse' if pool.dry_run else 'act'}"
        + (" # `act` lets the compactor cordon nodes and evict pods" if pool.dry_run else ""),
        f"enabled: {_flow(pool.enabled)}",
        *([f"nodes: {{labels: {_flow(pool.labels)}}}"] if pool.labels else []),
        f"underUsed: {_flow(under)} # percent of allocatable",
        f"age: {{node: {_flow(f'{pool.node_age}s')}}}",
    ]
    return "\n".join(lines) + "\n"


def _flow(value: Mapping[str, Any] | bool | str) -> str:
    """As JSON, which is YAML: whatever a name holds is quoted."""
    return msgspec.json.encode(value).decode()
