"""Reads a pool's ConfigMap as a `Pool`, and writes a `Pool` as its ConfigMap.

Each pool has one ConfigMap, labelled `trimtab.dev/pool`, with its settings as YAML under `pool.yaml`. All mistakes are
reported together. Every field is optional:

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
    resize: {canary: 10, verify: 10m, perHour: 60}                # of running pods; canary: percent of a workload
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

`config_map` writes only the fields that differ from the preset, with comments for a human reader.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from trimtab.cluster.config_error import MAX_MISTAKES, ConfigError, first_mistakes, quote_value, suggest_name
from trimtab.cluster.pool import (
    PRESETS,
    Goal,
    Pool,
    Precedence,
    ProtectCritical,
    ProtectUnready,
    Spare,
    pool_from_preset,
)
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.pool_schema import (
    GROUP_OPTIONS,
    InvalidValue,
    enum_parser,
    group_option_parser,
    integer_parser,
    parse_commitments,
    parse_flag,
    parse_labels,
    parse_mode,
    parse_names,
    parse_negated_flag,
    parse_percent,
    parse_prices,
    parse_schedulers,
    parse_seconds,
    parse_windows,
)
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.cluster.yaml_parser import Path

SETTINGS_KEY = "pool.yaml"


@dataclass(frozen=True, slots=True)
class PoolReading:
    """The pools that were read, with all mistakes and notes."""

    pools: tuple[Pool, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()
    notes: tuple[str, ...] = ()
    assumed: bool = False
    """Whether none of the documents has settings of a pool. The pools are then those that the nodes' labels or
    annotations name, with the settings of a preset."""


@dataclass(slots=True)
class PoolReader:
    """Reads one document of settings and collects its mistakes."""

    document: Document
    mistakes: list[ConfigError] = field(default_factory=list)

    def read_section(self, value: Any, path: Path, keys: Iterable[str]) -> Mapping[str, Any]:
        """Returns the mapping at a path, or an empty mapping if it is absent or not a mapping. Records a mistake for
        every unknown key."""
        names = tuple(keys)
        # YAML gives null for a key without a value: a section whose entries are all commented out.
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.add_mistake(InvalidValue(path, "a mapping", quote_value(value)))
            return {}
        for key in value:
            # Looking for a similar name costs time for every unknown key, and a hostile document may have thousands.
            if len(self.mistakes) > MAX_MISTAKES:
                break
            if key not in names:
                self.add_mistake(
                    InvalidValue((*path, key), f"one of {', '.join(names)}", quote_value(key), suggest_name(key, names))
                )
        return value

    def add_mistake(self, error: InvalidValue) -> None:
        """Records a mistake."""
        # One more than are reported: `first_mistakes` then says that there are more.
        if len(self.mistakes) <= MAX_MISTAKES:
            self.mistakes.append(self.document.error_at(error.path, error.expected, error.got, error.todo))

    def read_field(
        self,
        section: Mapping[str, Any],
        path: Path,
        key: str,
        parse: Callable[[Any, Path], Any],
        into: dict[str, Any],
        name: str,
    ) -> None:
        """Parses the value of `key` and stores it in `into[name]`. Stores nothing if the section lacks the key, or if
        the value is not valid, which is recorded as a mistake."""
        if key not in section:
            return
        try:
            # Settings that are absent stay out of `into`, so that the preset keeps its values.
            into[name] = parse(section[key], (*path, key))
        except InvalidValue as error:
            self.add_mistake(error)


FIELDS_BY_SECTION: Mapping[str, Mapping[str, tuple[str, Callable[[Any, Path], Any]]]] = {
    "": {
        "goal": ("goal", enum_parser(Goal)),
        "autoscaler": ("autoscaler", enum_parser(Precedence)),
        "dryRun": ("dry_run", parse_flag),
        "mode": ("dry_run", parse_mode),
        "enabled": ("enabled", parse_flag),
        "quiet": ("quiet", parse_seconds),
        "pendingLimit": ("pending_limit", parse_seconds),
        "prices": ("prices", parse_prices),
        "commitments": ("commitments", parse_commitments),
        "windows": ("windows", parse_windows),
        "schedulers": ("schedulers", parse_schedulers),
    },
    "age": {
        "node": ("node_age", parse_seconds),
        "receiver": ("receiver_age", parse_seconds),
        "pod": ("min_pod_age", parse_seconds),
    },
    "keep": {
        "nodes": ("min_nodes", integer_parser()),
        "nodesPerZone": ("min_per_zone", integer_parser()),
        "spare": ("spare", enum_parser(Spare)),
    },
    "pace": {
        "drains": ("drains", integer_parser(1)),
        "evictionsPerHour": ("evictions_per_hour", integer_parser(1)),
        "openingsPerHour": ("openings_per_hour", integer_parser()),
        "leastGain": ("least_gain", integer_parser()),
    },
    "resize": {
        "canary": ("resize_canary", integer_parser(1)),
        "verify": ("resize_verify", parse_seconds),
        "perHour": ("resizes_per_hour", integer_parser()),
    },
    "lead": {"maxThreshold": ("lead_max_threshold", parse_percent)},
    "groupOptions": {},
    "optOut": {"nodes": ("keep_nodes", parse_names), "pods": ("keep_pods", parse_names)},
    "protect": {
        "singleReplicas": ("single_replicas", parse_negated_flag),
        "jobs": ("jobs", parse_negated_flag),
        "notReady": ("not_ready", parse_negated_flag),
        "unready": ("unready", enum_parser(ProtectUnready)),
        "criticalPods": ("critical_pods", enum_parser(ProtectCritical)),
        "maxGrace": ("max_grace", parse_seconds),
    },
}
"""Section → key → (field of `Pool`, parser of its value)."""
EXTRA_KEYS = {"keep": ("headroom",), "groupOptions": tuple(GROUP_OPTIONS)}
TOP_KEYS = ("preset", "nodes", "underUsed", *FIELDS_BY_SECTION[""], *(name for name in FIELDS_BY_SECTION if name))


def read_settings(document: Document, name: str) -> tuple[Pool | None, list[ConfigError]]:
    """Returns the pool of this name that the document describes, and the mistakes in the document. With any mistake,
    the pool is None."""
    reader = PoolReader(document)
    top = reader.read_section(document.value, (), TOP_KEYS)
    base = top.get("preset", "balanced")
    if not isinstance(base, str) or base not in PRESETS:
        reader.add_mistake(
            InvalidValue(
                ("preset",), f"one of {', '.join(PRESETS)}", quote_value(base), suggest_name(str(base), PRESETS)
            )
        )
        # Reading goes on with a valid preset, so that the mistakes in the other fields are reported, too.
        base = "balanced"
    pool, into = pool_from_preset(base, name), {}  # type: Pool, dict[str, Any]
    for section, keys in FIELDS_BY_SECTION.items():
        path: Path = (section,) if section else ()
        section_map = (
            reader.read_section(top.get(section), path, (*keys, *EXTRA_KEYS.get(section, ()))) if section else top
        )
        for key, (attribute, parse) in keys.items():
            reader.read_field(section_map, path, key, parse, into, attribute)
    # Both set `Pool.dry_run`, and one of them would silently win.
    if "mode" in top and "dryRun" in top:
        reader.add_mistake(
            InvalidValue(("dryRun",), "mode or dryRun, not both", quote_value(top["dryRun"]), "remove dryRun")
        )
    _read_headroom(reader, top, pool, into)
    _read_group_options(reader, top, into)
    _read_under(reader, top, pool, into)
    _read_nodes(reader, top, into)
    return (None if reader.mistakes else replace(pool, **into)), reader.mistakes


def _read_headroom(reader: PoolReader, top: Mapping[str, Any], pool: Pool, into: dict[str, Any]) -> None:
    keep = top.get("keep")
    if not isinstance(keep, dict) or "headroom" not in keep:
        return
    path: Path = ("keep", "headroom")
    section = reader.read_section(keep["headroom"], path, ("percent", "nodes", "largestPod"))
    parts: dict[str, Any] = {}
    reader.read_field(section, path, "percent", parse_percent, parts, "percent")
    reader.read_field(section, path, "nodes", integer_parser(), parts, "nodes")
    reader.read_field(section, path, "largestPod", parse_flag, parts, "largest_pod")
    # A part of the headroom that is absent keeps the value of the preset.
    into["headroom"] = replace(pool.headroom, **parts)


def _read_group_options(reader: PoolReader, top: Mapping[str, Any], into: dict[str, Any]) -> None:
    value = top.get("groupOptions")
    if not isinstance(value, dict):
        return
    options: dict[str, Any] = {}
    for name, flag_name in GROUP_OPTIONS.items():
        reader.read_field(value, ("groupOptions",), name, group_option_parser(name), options, flag_name)
    into["group_options"] = options


def _read_under(reader: PoolReader, top: Mapping[str, Any], pool: Pool, into: dict[str, Any]) -> None:
    """Reads the section `underUsed`. Its keys `count` and `for` are settings; every other key is a resource with its
    percentage."""
    value = top.get("underUsed")
    if value is None:
        return
    if not isinstance(value, dict):
        reader.add_mistake(InvalidValue(("underUsed",), "a mapping of resources to percentages", quote_value(value)))
        return
    path: Path = ("underUsed",)
    reader.read_field(value, path, "count", integer_parser(1), into, "under_count")
    reader.read_field(value, path, "for", parse_seconds, into, "under_for")
    lines: dict[str, Any] = {}
    for key in sorted(set(value) - {"count", "for"}):
        # Extended resources have a domain in their name (Kubernetes' rule), so any name with a slash may be one.
        if key in ("cpu", "memory", "pods", "ephemeral-storage") or "/" in key:
            reader.read_field(value, path, key, parse_percent, lines, key)
        else:
            keys = ("cpu", "memory", "pods", "ephemeral-storage", "count", "for")
            reader.add_mistake(
                InvalidValue(
                    (*path, key),
                    "a resource such as cpu or memory, or `count` or `for`",
                    quote_value(key),
                    suggest_name(key, keys),
                )
            )
    # A resource that the settings do not name keeps the threshold of the preset.
    into["under"] = {**pool.under, **lines}


def _read_nodes(reader: PoolReader, top: Mapping[str, Any], into: dict[str, Any]) -> None:
    value = top.get("nodes")
    if value == "all":
        into["everything"] = True
    elif value is not None:
        section = reader.read_section(value, ("nodes",), ("labels",))
        reader.read_field(section, ("nodes",), "labels", parse_labels, into, "labels")


def read_pools(documents: Iterable[Document]) -> PoolReading:
    """Returns every pool among the documents, sorted by name. Documents that are not ConfigMaps with the pool label are
    skipped."""
    pools_by_name: dict[str, Pool] = {}
    mistakes: list[ConfigError] = []
    for document in documents:
        pool_document = _pool_document(document)
        if pool_document is None:
            continue
        name, text = pool_document
        pool, pool_mistakes = _read_pool(document, name, text)
        mistakes += pool_mistakes
        if pool is not None and name in pools_by_name:
            # The first one stays; the mistake names the second.
            mistakes.append(document.error_at(("metadata", "labels"), "a name that no other pool has", name))
        elif pool is not None:
            pools_by_name[name] = pool
    return PoolReading(tuple(pools_by_name[name] for name in sorted(pools_by_name)), tuple(mistakes))


def _pool_document(document: Document) -> tuple[str, object] | None:
    """Returns (pool name, text of its settings) if the document is a pool's ConfigMap, otherwise None."""
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "ConfigMap":
        return None
    metadata = value.get("metadata")
    own_labels = metadata.get("labels") if isinstance(metadata, dict) else None
    name = own_labels.get(POOL_LABEL) if isinstance(own_labels, dict) else None
    data = value.get("data")
    return (
        (name, data.get(SETTINGS_KEY) if isinstance(data, dict) else None) if isinstance(name, str) and name else None
    )


def _read_pool(document: Document, name: str, text: object) -> tuple[Pool | None, list[ConfigError]]:
    if not isinstance(text, str):
        return None, [document.error_at(("data", SETTINGS_KEY), "the pool's settings as YAML", quote_value(text))]
    problem = _size_problem(text)
    if problem:
        return None, [
            document.error_at(
                ("data", SETTINGS_KEY),
                "settings of one pool",
                problem,
                "remove the fields that are not settings of a pool",
            )
        ]
    # The settings are YAML within YAML: their mistakes have lines of the inner text, so the file's name says which text
    # it is.
    reading = read_documents(f"{document.file} {document.entry_name} {SETTINGS_KEY}", text.encode())
    if reading.mistakes:
        return None, first_mistakes(reading.mistakes)
    # Empty text, or only comments: a pool with all defaults.
    if not reading.documents:
        return pool_from_preset("balanced", name), []
    if len(reading.documents) > 1:
        return None, [
            reading.documents[1].error_at(
                (), "one document of settings", "a second document", "merge the two documents into one"
            )
        ]
    pool, mistakes = read_settings(reading.documents[0], name)
    return pool, first_mistakes(mistakes)


MAX_CHARACTERS = 64 * 1024
MAX_ENTRIES = 3_000
"""The largest number of lines, or of entries in brackets, that are parsed. A pool with prices for every instance type
of a large cloud has a third of this number."""


def _size_problem(text: str) -> str:
    """Returns a sentence if the text is too large to be one pool's settings, otherwise an empty string. It is called
    before the YAML is parsed."""
    if len(text) > MAX_CHARACTERS:
        return f"{len(text)} characters, but at most {MAX_CHARACTERS} are allowed"
    # Counting characters is cheap. Parsing takes time and memory for each entry, whatever its length.
    entries = sum(map(text.count, "\n,[{:"))
    return f"{entries} lines and entries, but at most {MAX_ENTRIES} are allowed" if entries > MAX_ENTRIES else ""


NAME_PREFIX = "pool-"


def config_map(pool: Pool, namespace: str, comments: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the pool's ConfigMap. Raises ValueError if the pool has a setting that `format_pool` cannot write."""
    metadata = {"name": NAME_PREFIX + pool.name, "namespace": namespace, "labels": {POOL_LABEL: pool.name}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {SETTINGS_KEY: format_pool(pool, comments)},
    }


def format_pool(pool: Pool, comments: Sequence[str] = ()) -> str:
    """Returns the text of `pool.yaml` for a pool that differs from the preset `balanced` only in enabled, nodes,
    underUsed, age and mode.

    Reading the text gives the same pool. Raises ValueError if another field differs from the preset.
    """
    base = PRESETS["balanced"]
    written_fields = ("name", "labels", "enabled", "dry_run", "under", "under_count", "under_for", "node_age")
    # A written pool that lost one of its settings could compact more than the original.
    other_fields = [
        name for name in Pool.__slots__ if name not in written_fields and getattr(pool, name) != getattr(base, name)
    ]
    if other_fields:
        raise ValueError(f"pool {pool.name}: {', '.join(other_fields)} cannot be written")
    under = {**pool.under, "count": pool.under_count, "for": f"{pool.under_for}s"}
    lines = [
        *(f"# {comment}" for comment in comments),
        "preset: balanced",
        f"mode: {'rehearse' if pool.dry_run else 'act'}"
        + (" # `act` lets the compactor cordon nodes and evict pods" if pool.dry_run else ""),
        f"enabled: {_as_flow_yaml(pool.enabled)}",
        *([f"nodes: {{labels: {_as_flow_yaml(pool.labels)}}}"] if pool.labels else []),
        f"underUsed: {_as_flow_yaml(under)} # percent of allocatable",
        f"age: {{node: {_as_flow_yaml(f'{pool.node_age}s')}}}",
    ]
    return "\n".join(lines) + "\n"


def _as_flow_yaml(value: Mapping[str, Any] | bool | str) -> str:
    """Returns the value as JSON, which is valid YAML too. JSON quotes every name, whatever characters the name has."""
    return msgspec.json.encode(value).decode()
