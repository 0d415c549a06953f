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
    keep: {nodes: 1, nodesPerZone: 0, spare: none,                # spare: none | node | zone
           headroom: {percent: 5, nodes: 0, largestPod: true}}
    pace: {drains: 1, evictionsPerHour: 200, leastGain: 0}
    prices: {n2-standard-4: 0.2}                                  # dollars an hour
    windows: [{days: [mon, tue], from: "22:00", to: "05:00", timeZone: Europe/Berlin}]
    optOut: {nodes: [example.com/keep], pods: []}
    protect: {singleReplicas: true, jobs: true, notReady: false}
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.cluster.documents import Document, read
from trimtab.cluster.mistake import Mistake, nearest, shown
from trimtab.cluster.pool import LABEL, PRESETS, Goal, Pool, Spare, preset
from trimtab.cluster.pool_values import (
    Bad,
    flag,
    labels,
    mode,
    one_of,
    percent,
    prices,
    span,
    texts,
    unless,
    whole,
    windows,
)
from trimtab.cluster.yaml_text import Path

KEY = "pool.yaml"


@dataclass(frozen=True, slots=True)
class PoolReading:
    pools: tuple[Pool, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Reader:
    """Reads one document of settings, collecting mistakes."""

    document: Document
    mistakes: list[Mistake] = field(default_factory=list)

    def section(self, value: Any, path: Path, known: Iterable[str]) -> Mapping[str, Any]:
        known = tuple(known)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong(Bad(path, "a mapping", shown(value)))
            return {}
        for key in value:
            if key not in known:
                self.wrong(Bad((*path, key), f"one of {', '.join(known)}", shown(key), nearest(key, known)))
        return value

    def wrong(self, bad: Bad) -> None:
        self.mistakes.append(self.document.mistake(bad.path, bad.expected, bad.came, bad.todo))

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
        except Bad as bad:
            self.wrong(bad)


TABLE: Mapping[str, Mapping[str, tuple[str, Callable[[Any, Path], Any]]]] = {
    "": {
        "goal": ("goal", one_of(Goal)), "dryRun": ("dry_run", flag), "mode": ("dry_run", mode),
        "enabled": ("enabled", flag), "quiet": ("quiet", span), "prices": ("prices", prices),
        "windows": ("windows", windows),
    },
    "age": {"node": ("node_age", span), "receiver": ("receiver_age", span), "pod": ("min_pod_age", span)},
    "keep": {
        "nodes": ("min_nodes", whole()), "nodesPerZone": ("min_per_zone", whole()), "spare": ("spare", one_of(Spare)),
    },
    "pace": {
        "drains": ("drains", whole(1)), "evictionsPerHour": ("evictions_per_hour", whole(1)),
        "leastGain": ("least_gain", whole()),
    },
    "optOut": {"nodes": ("keep_nodes", texts), "pods": ("keep_pods", texts)},
    "protect": {
        "singleReplicas": ("single_replicas", unless), "jobs": ("jobs", unless), "notReady": ("not_ready", unless),
    },
}  # fmt: skip
"""Section → key → (field of `Pool`, how it is read)."""
EXTRA = {"keep": ("headroom",)}
TOP = ("preset", "nodes", "underUsed", *TABLE[""], *(name for name in TABLE if name))


def settings(document: Document, name: str) -> tuple[Pool | None, list[Mistake]]:
    """The pool of this name that the document describes; None when anything is wrong with it."""
    reader = Reader(document)
    top = reader.section(document.value, (), TOP)
    base = top.get("preset", "balanced")
    if not isinstance(base, str) or base not in PRESETS:
        reader.wrong(Bad(("preset",), f"one of {', '.join(PRESETS)}", shown(base), nearest(str(base), PRESETS)))
        base = "balanced"
    pool, into = preset(base, name), {}  # type: Pool, dict[str, Any]
    for section, keys in TABLE.items():
        path: Path = (section,) if section else ()
        found = reader.section(top.get(section), path, (*keys, *EXTRA.get(section, ()))) if section else top
        for key, (attribute, parse) in keys.items():
            reader.take(found, path, key, parse, into, attribute)
    if "mode" in top and "dryRun" in top:
        reader.wrong(Bad(("dryRun",), "mode or dryRun, not both", shown(top["dryRun"]), "leave dryRun out"))
    _headroom(reader, top, pool, into)
    _under(reader, top, pool, into)
    _nodes(reader, top, into)
    return (None if reader.mistakes else replace(pool, **into)), reader.mistakes


def _headroom(reader: Reader, top: Mapping[str, Any], pool: Pool, into: dict[str, Any]) -> None:
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


def _under(reader: Reader, top: Mapping[str, Any], pool: Pool, into: dict[str, Any]) -> None:
    """`count` and `for`; every other key is a resource with its percentage."""
    value = top.get("underUsed")
    if value is None:
        return
    if not isinstance(value, dict):
        reader.wrong(Bad(("underUsed",), "a mapping of resources to percentages", shown(value)))
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
            reader.wrong(Bad((*path, key), "a resource, count or for", shown(key), nearest(key, known)))
    into["under"] = {**pool.under, **lines}


def _nodes(reader: Reader, top: Mapping[str, Any], into: dict[str, Any]) -> None:
    value = top.get("nodes")
    if value == "all":
        into["everything"] = True
    elif value is not None:
        found = reader.section(value, ("nodes",), ("labels",))
        reader.take(found, ("nodes",), "labels", labels, into, "labels")


def pools(documents: Iterable[Document]) -> PoolReading:
    """Every pool among the documents (ConfigMaps labelled as pools; others are not ours), in order of name."""
    found: dict[str, Pool] = {}
    mistakes: list[Mistake] = []
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


def _one(document: Document, name: str, text: object) -> tuple[Pool | None, list[Mistake]]:
    if not isinstance(text, str):
        return None, [document.mistake(("data", KEY), "the pool's settings as YAML", shown(text))]
    reading = read(f"{document.file} {document.entry} {KEY}", text.encode())
    if reading.mistakes:
        return None, list(reading.mistakes)
    if not reading.documents:
        return preset("balanced", name), []
    if len(reading.documents) > 1:
        return None, [
            reading.documents[1].mistake((), "one document of settings", "another one", "write them into one")
        ]
    return settings(reading.documents[0], name)
