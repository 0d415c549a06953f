"""Reads a pool's ConfigMap as a `Pool`, and writes a `Pool` as its ConfigMap.

Each pool has one ConfigMap, labelled `trimtab.dev/pool`, with its settings as YAML under `pool.yaml`. The settings are
declared at the fields of `Pool`; all are optional, and all mistakes are reported together:

    preset: balanced
    nodes: {labels: {team: web}}
    underUsed: {cpu: 80, memory: 80, for: 10m}
    quiet: 10m

`config_map` writes only the fields that differ from the preset, with comments for a human reader.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from trimtab.cluster.config_error import ConfigError, first_mistakes, quote_value
from trimtab.cluster.documents.declared_fields import DocumentSection, field_of, section_of
from trimtab.cluster.documents.read_document import DocumentReader, replace_values
from trimtab.cluster.pool import ALL_NODES, MODE, NODE_LABELS, PRESET, PRESETS, Pool, pool_from_preset
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.yaml_documents import Document, read_documents

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


def pool_settings() -> DocumentSection:
    """Returns the declared settings of a pool."""
    return section_of(Pool, PRESET)


def read_settings(document: Document, name: str) -> tuple[Pool | None, list[ConfigError]]:
    """Returns the pool of this name that the document describes, and the mistakes in the document. With any mistake,
    the pool is None."""
    reader = DocumentReader(document)
    values = reader.read_section(pool_settings(), document.value)
    base = pool_from_preset(values.pop((PRESET.key,), "balanced"), name)
    return (None if reader.mistakes else replace_values(base, values)), reader.mistakes


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
    key_of = {name: field_of(Pool, name).key for name in written_fields if name not in ("name", "under")}
    under = {**pool.under, key_of["under_count"]: pool.under_count, key_of["under_for"]: f"{pool.under_for}s"}
    under_used, age = (field_of(Pool, name).steps[0] for name in ("under", "node_age"))
    lines = [
        *(f"# {comment}" for comment in comments),
        f"{PRESET.key}: balanced",
        f"{key_of['dry_run']}: {MODE.type.write(pool.dry_run)}"
        + (" # `act` lets the compactor cordon nodes and evict pods" if pool.dry_run else ""),
        f"{key_of['enabled']}: {_as_flow_yaml(pool.enabled)}",
        *([f"{ALL_NODES.key}: {{{NODE_LABELS.key}: {_as_flow_yaml(pool.labels)}}}"] if pool.labels else []),
        f"{under_used}: {_as_flow_yaml(under)} # percent of allocatable",
        f"{age}: {{{key_of['node_age']}: {_as_flow_yaml(f'{pool.node_age}s')}}}",
    ]
    return "\n".join(lines) + "\n"


def _as_flow_yaml(value: Mapping[str, Any] | bool | str) -> str:
    """Returns the value as JSON, which is valid YAML too. JSON quotes every name, whatever characters the name has."""
    return msgspec.json.encode(value).decode()
