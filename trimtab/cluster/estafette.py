"""Reads the configuration of an estafette-k8s-node-compactor as pools of Trimtab, with notes about what differs.

The configuration can be in four kinds of documents (see that project's readme, main.go and Helm chart):

- a ConfigMap with JSON under `estafette-k8s-node-compactor-config.yaml`;
- that JSON alone: `nodePools`, and per GKE node pool `enabled`, `scaleDownCPURequestRatioLimit` and
  `scaleDownRequiredUnderutilizedNodeCount`;
- the values of the Helm chart: the JSON under `configmap.compactorConfig`, and two durations;
- the Deployment, whose environment variables have the same durations.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from trimtab.cluster.config_error import ConfigError, quote_value
from trimtab.cluster.pool import Pool, pool_from_preset
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_parser import Path

CONFIG_KEY = "estafette-k8s-node-compactor-config.yaml"
APP_NAME = "estafette-k8s-node-compactor"
POOL_LABEL = "cloud.google.com/gke-nodepool"
MARKED_SECONDS_VARIABLE, NODE_AGE_SECONDS_VARIABLE = (
    "NEEDED_MARKED_TIME_FOR_REMOVAL_SECONDS",
    "MINIMUM_NODE_AGE_SECONDS",
)
CODE_SECONDS: Mapping[str, int] = {MARKED_SECONDS_VARIABLE: 300, NODE_AGE_SECONDS_VARIABLE: 1200}
"""Environment variable → the default that the compactor's code has for it, in seconds (main.go)."""
CHART_VALUES: Mapping[str, tuple[str, int]] = {
    MARKED_SECONDS_VARIABLE: ("neededMarkedTimeForRemovalSeconds", 600),
    NODE_AGE_SECONDS_VARIABLE: ("minimumNodeAgeSeconds", 0),
}
"""Environment variable → the Helm value that sets it, and that value's default in the chart (values.yaml)."""
MAX_COUNT = MAX_SECONDS = 10**9
POOL_NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]{0,56}[a-z0-9])?")
"""The names that a pool may have: with Trimtab's prefix added, a name must still be valid as a ConfigMap's name and as
a label value."""
DIFFERENCE_NOTES = (
    "only cpu decides whether a node is under-used, as in estafette; Trimtab does not use the memory threshold "
    "of the preset",
    "Trimtab evicts pods through the eviction API and respects PodDisruptionBudgets; estafette deleted pods and "
    "ignored the budgets",
    "Trimtab drains a node only if all of its pods fit on other nodes; estafette only counted the under-used nodes",
    "no node is drained before you set `mode: act` for the pool",
)
TIMES_UNKNOWN = (
    "the files contain neither the Deployment of estafette nor its Helm values, so Trimtab uses the defaults of "
    "estafette's code: a node is under-used after 300 s and old enough after 1200 s"
)


@dataclass(frozen=True, slots=True)
class EstafetteConfiguration:
    """The JSON with the pools, and where in which document it is."""

    document: Document
    path: Path
    """The path, inside the document, of the JSON text or of the mapping with `nodePools`."""
    value: Any


@dataclass(slots=True)
class EstafetteDocuments:
    """The relevant content of all documents, before it is validated."""

    configurations: list[EstafetteConfiguration] = field(default_factory=list)
    seconds: dict[str, int] = field(default_factory=dict)
    """Environment variable → seconds, from one Deployment or one set of Helm values."""
    mistakes: list[ConfigError] = field(default_factory=list)


def is_estafette_document(document: Document) -> bool:
    """Returns whether the document is of one of the four kinds that can hold the configuration."""
    value = document.value
    return isinstance(value, dict) and any(
        is_one(value) for is_one in (_is_config_map, _is_bare_json, _is_chart_values, is_deployment)
    )


def import_pools(documents: Iterable[Document]) -> PoolReading:
    """Returns the pools, the mistakes, and notes about what Trimtab will do differently.

    The durations after which a node counts as under-used and as old enough are those of the Deployment or of the Helm
    values. If neither is among the documents, the defaults of the compactor's code are used, and a note says so.
    """
    contents = EstafetteDocuments()
    for document in filter(is_estafette_document, documents):
        _collect(document, contents)
    pools: dict[str, Pool] = {}
    for configuration in contents.configurations:
        for name, settings in sorted(_pool_settings(configuration, contents.mistakes).items()):
            pool = _build_pool(configuration, name, settings, contents)
            # Two documents with the same pool: neither is preferred.
            if pool is not None and name in pools:
                expected = "a pool that no other document contains"
                contents.mistakes.append(configuration.document.error_at((*configuration.path, name), expected, name))
            elif pool is not None:
                pools[name] = pool
    notes = DIFFERENCE_NOTES if contents.seconds else (*DIFFERENCE_NOTES, TIMES_UNKNOWN)
    return PoolReading(tuple(pools[name] for name in sorted(pools)), tuple(contents.mistakes), notes if pools else ())


def _collect(document: Document, contents: EstafetteDocuments) -> None:
    """Adds the content of one document to `contents`."""
    value = document.value
    if _is_config_map(value):
        contents.configurations.append(
            EstafetteConfiguration(document, ("data", CONFIG_KEY), value["data"][CONFIG_KEY])
        )
    elif _is_bare_json(value):
        contents.configurations.append(EstafetteConfiguration(document, (), value))
    elif is_deployment(value):
        contents.seconds |= _seconds_of_deployment(document, contents.mistakes)
    else:
        path: Path = ("configmap", "compactorConfig")
        contents.configurations.append(EstafetteConfiguration(document, path, value["configmap"]["compactorConfig"]))
        # The chart's values set these environment variables, so one of both documents is enough.
        seconds = {name: default for name, (_, default) in CHART_VALUES.items()}
        for name, (key, _) in CHART_VALUES.items():
            if key in document.value:
                _collect_seconds(document, (key,), name, document.value[key], seconds, contents.mistakes)
        contents.seconds |= seconds


def _is_config_map(value: Mapping[str, Any]) -> bool:
    data = value.get("data")
    return isinstance(data, dict) and CONFIG_KEY in data


def _is_bare_json(value: Mapping[str, Any]) -> bool:
    return "nodePools" in value and "kind" not in value


def _is_chart_values(value: Mapping[str, Any]) -> bool:
    section = value.get("configmap")
    return isinstance(section, dict) and "compactorConfig" in section


def is_deployment(value: Mapping[str, Any]) -> bool:
    """Returns whether this is a Deployment of estafette's compactor: one of its containers has the compactor's image or
    sets one of its environment variables."""
    return value.get("kind") == "Deployment" and any(map(_is_compactor, containers_of(value)))


def _is_compactor(container: Mapping[str, Any]) -> bool:
    """Returns whether a container is the compactor: by the name of its image, without registry and tag, or by the
    environment variable that no other program has."""
    image = container.get("image")
    # REGISTRY/PATH/NAME:TAG@DIGEST, and the registry's port has a colon, too: cut the digest, then the path, then the
    # tag.
    repository = image.partition("@")[0].rpartition("/")[2].partition(":")[0] if isinstance(image, str) else ""
    return repository == APP_NAME or any(
        name == MARKED_SECONDS_VARIABLE for name, _, _ in _environment_variables(container)
    )


def containers_of(deployment: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the containers of a Deployment's pod template; entries that are not mappings are skipped."""
    value: Any = deployment
    for step in ("spec", "template", "spec", "containers"):
        value = value.get(step) if isinstance(value, dict) else None
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _environment_variables(container: Mapping[str, Any]) -> Iterator[tuple[Any, Any, int]]:
    """Yields the name, the value and the index of each environment variable of a container."""
    variables = container.get("env")
    for index, item in enumerate(variables if isinstance(variables, list) else ()):
        if isinstance(item, dict):
            yield item.get("name"), item.get("value"), index


def _seconds_of_deployment(document: Document, mistakes: list[ConfigError]) -> dict[str, int]:
    seconds = dict(CODE_SECONDS)
    for number, container in enumerate(containers_of(document.value)):
        for name, value, index in _environment_variables(container):
            if name in CODE_SECONDS:
                path: Path = ("spec", "template", "spec", "containers", number, "env", index, "value")
                _collect_seconds(document, path, name, value, seconds, mistakes)
    return seconds


def _collect_seconds(
    document: Document, path: Path, name: str, value: Any, seconds: dict[str, int], mistakes: list[ConfigError]
) -> None:
    # Helm values may have numbers; the environment of a Deployment has text.
    text = str(value) if not isinstance(value, bool) else ""
    if text.isascii() and text.isdigit() and int(text) <= MAX_SECONDS:
        seconds[name] = int(text)
    else:
        mistakes.append(document.error_at(path, f"seconds, a whole number from 0 to {MAX_SECONDS}", quote_value(value)))


def _pool_settings(configuration: EstafetteConfiguration, mistakes: list[ConfigError]) -> dict[str, Any]:
    """Returns pool name → settings. In a ConfigMap the JSON is a text; in Helm values, and in a document of its own, it
    is parsed already. Mistakes are added to `mistakes`."""
    parsed = configuration.value
    if not isinstance(parsed, dict):
        try:
            parsed = msgspec.json.decode(parsed)
        except (msgspec.DecodeError, TypeError, UnicodeError) as error:
            mistakes.append(configuration.document.error_at(configuration.path, "JSON", str(error)))
            return {}
    pools = parsed.get("nodePools") if isinstance(parsed, dict) else None
    if not isinstance(pools, dict):
        path = (*configuration.path, "nodePools")
        mistakes.append(configuration.document.error_at(path, "a mapping of pools", quote_value(pools)))
        return {}
    return pools


def _build_pool(
    configuration: EstafetteConfiguration, name: str, settings: Any, contents: EstafetteDocuments
) -> Pool | None:
    """Returns the pool of this name, or None if any of its fields is not valid. Each such field is added to the
    mistakes."""
    fields = settings if isinstance(settings, dict) else {}
    ratio = fields.get("scaleDownCPURequestRatioLimit", 0)
    count = fields.get("scaleDownRequiredUnderutilizedNodeCount", 0)
    is_share = isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 <= ratio <= 1
    is_count = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_COUNT
    path = (*configuration.path, "nodePools", name)
    problems = [
        configuration.document.error_at((*path, *key), expected, quote_value(value))
        for is_right, key, expected, value in (
            (isinstance(settings, dict), (), "a mapping", settings),
            (POOL_NAME_PATTERN.fullmatch(name) is not None, (), "the name of a GKE node pool", name),
            (is_share, ("scaleDownCPURequestRatioLimit",), "a share from 0 to 1", ratio),
            (is_count, ("scaleDownRequiredUnderutilizedNodeCount",), f"a count from 0 to {MAX_COUNT}", count),
        )
        if not is_right
    ]
    contents.mistakes += problems
    if problems:
        return None
    # A single variable may be missing from the Deployment: the default in the code holds for it.
    seconds = {**CODE_SECONDS, **contents.seconds}
    return replace(
        pool_from_preset("balanced", name),
        enabled=fields.get("enabled") is True,
        labels={POOL_LABEL: name},
        # estafette compares cpu alone. 100 percent of memory is never exceeded, so memory does not exclude a node.
        under={"cpu": round(ratio * 100), "memory": 100},
        under_count=max(1, count),
        under_for=seconds[MARKED_SECONDS_VARIABLE],
        node_age=seconds[NODE_AGE_SECONDS_VARIABLE],
    )
