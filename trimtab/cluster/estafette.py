"""What did an estafette node-compactor do here? Its configuration as pools of ours, with notes for what differs.

Four documents tell of it (estafette-k8s-node-compactor: readme, main.go, and the values of its Helm chart):

- a ConfigMap with JSON under `estafette-k8s-node-compactor-config.yaml`;
- that JSON by itself: `nodePools`, and per GKE node pool `enabled`, `scaleDownCPURequestRatioLimit` and
  `scaleDownRequiredUnderutilizedNodeCount`;
- the values of its Helm chart: the JSON under `configmap.compactorConfig`, and three times;
- its Deployment, whose environment has these times.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from trimtab.cluster.config_error import ConfigError, shown
from trimtab.cluster.pool import Pool, preset
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_parser import Path

KEY = "estafette-k8s-node-compactor-config.yaml"
APP = "estafette-k8s-node-compactor"
POOL_LABEL = "cloud.google.com/gke-nodepool"
MARKED, NODE_AGE = "NEEDED_MARKED_TIME_FOR_REMOVAL_SECONDS", "MINIMUM_NODE_AGE_SECONDS"
CODE_SECONDS: Mapping[str, int] = {MARKED: 300, NODE_AGE: 1200}
"""Environment variable → what its code takes where the variable is not set (main.go)."""
CHART_VALUES: Mapping[str, tuple[str, int]] = {
    MARKED: ("neededMarkedTimeForRemovalSeconds", 600), NODE_AGE: ("minimumNodeAgeSeconds", 0),
}  # fmt: skip
"""Environment variable → the Helm value that sets it, and what the chart takes where it is not set (values.yaml)."""
MAX_COUNT = MAX_SECONDS = 10**9
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,56}[a-z0-9])?")
"""Of a pool: with our prefix it must still be the name of a ConfigMap and the value of a label."""
NOTES = (
    "memory counts too: estafette looked at cpu only; the memory line of the preset is kept off",
    "pods are evicted through the eviction API and budgets are kept; estafette deleted pods whatever their budget said",
    "a node goes only when all of its pods have a place elsewhere; estafette relied on the number of under-used nodes",
    "nothing is done before the pool says `mode: act`",
)
TIMES_UNKNOWN = (
    "neither its Deployment nor its Helm values were given: a node is under-used after 300 s and old enough after "
    "1200 s, as its code has it"
)


@dataclass(frozen=True, slots=True)
class EstafetteConfiguration:
    """The JSON of its pools, and where in a document it stands."""

    document: Document
    path: Path
    """Of the text or of the mapping that holds `nodePools`."""
    value: Any


@dataclass(slots=True)
class EstafetteDocuments:
    """What the documents tell, before it is judged."""

    configurations: list[EstafetteConfiguration] = field(default_factory=list)
    seconds: dict[str, int] = field(default_factory=dict)
    """Environment variable → seconds, as one Deployment or one set of Helm values says."""
    mistakes: list[ConfigError] = field(default_factory=list)


def is_estafette(document: Document) -> bool:
    """Is this one of the four documents?"""
    value = document.value
    return isinstance(value, dict) and any(
        is_one(value) for is_one in (_is_config_map, _is_bare, _is_chart_values, is_deployment)
    )


def imported(documents: Iterable[Document]) -> PoolReading:
    """Pools, mistakes, and what will be different from now on.

    A node counts as under-used, and is old enough, after the times of the Deployment or the Helm values; after those
    of its code, with a note, where neither is among the documents.
    """
    found = EstafetteDocuments()
    for document in filter(is_estafette, documents):
        _take(document, found)
    pools: dict[str, Pool] = {}
    for configuration in found.configurations:
        for name, said in sorted(_pools(configuration, found.mistakes).items()):
            pool = _pool(configuration, name, said, found)
            if pool is not None and name in pools:
                expected = "a pool that no other document has"
                found.mistakes.append(configuration.document.mistake((*configuration.path, name), expected, name))
            elif pool is not None:
                pools[name] = pool
    notes = NOTES if found.seconds else (*NOTES, TIMES_UNKNOWN)
    return PoolReading(
        tuple(pools[name] for name in sorted(pools)), tuple(found.mistakes), notes if pools else ()
    )  # fmt: skip


def _take(document: Document, found: EstafetteDocuments) -> None:
    value = document.value
    if _is_config_map(value):
        found.configurations.append(EstafetteConfiguration(document, ("data", KEY), value["data"][KEY]))
    elif _is_bare(value):
        found.configurations.append(EstafetteConfiguration(document, (), value))
    elif is_deployment(value):
        found.seconds |= _environment_seconds(document, found.mistakes)
    else:
        path: Path = ("configmap", "compactorConfig")
        found.configurations.append(EstafetteConfiguration(document, path, value["configmap"]["compactorConfig"]))
        found.seconds |= _chart_seconds(document, found.mistakes)


def _is_config_map(value: Mapping[str, Any]) -> bool:
    data = value.get("data")
    return isinstance(data, dict) and KEY in data


def _is_bare(value: Mapping[str, Any]) -> bool:
    return "nodePools" in value and "kind" not in value


def _is_chart_values(value: Mapping[str, Any]) -> bool:
    section = value.get("configmap")
    return isinstance(section, dict) and "compactorConfig" in section


def is_deployment(value: Mapping[str, Any]) -> bool:
    """Is this a Deployment of which a container has its image, or one of its variables?"""
    return value.get("kind") == "Deployment" and any(map(_is_compactor, containers_of(value)))


def _is_compactor(container: Mapping[str, Any]) -> bool:
    """By the image's name without registry and tag, else by the variable that only it knows."""
    image = container.get("image")
    repository = image.partition("@")[0].rpartition("/")[2].partition(":")[0] if isinstance(image, str) else ""
    return repository == APP or any(name == MARKED for name, _, _ in _variables(container))


def containers_of(deployment: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The containers of a Deployment's template that are mappings."""
    value: Any = deployment
    for step in ("spec", "template", "spec", "containers"):
        value = value.get(step) if isinstance(value, dict) else None
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _variables(container: Mapping[str, Any]) -> Iterator[tuple[Any, Any, int]]:
    """Name, value and index of each environment variable."""
    listed = container.get("env")
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(item, dict):
            yield item.get("name"), item.get("value"), index


def _environment_seconds(document: Document, mistakes: list[ConfigError]) -> dict[str, int]:
    found = dict(CODE_SECONDS)
    for number, container in enumerate(containers_of(document.value)):
        for name, value, index in _variables(container):
            if name in CODE_SECONDS:
                path: Path = ("spec", "template", "spec", "containers", number, "env", index, "value")
                _take_seconds(document, path, name, value, found, mistakes)
    return found


def _chart_seconds(document: Document, mistakes: list[ConfigError]) -> dict[str, int]:
    found = {name: default for name, (_, default) in CHART_VALUES.items()}
    for name, (key, _) in CHART_VALUES.items():
        if key in document.value:
            _take_seconds(document, (key,), name, document.value[key], found, mistakes)
    return found


def _take_seconds(
    document: Document, path: Path, name: str, value: Any, into: dict[str, int], mistakes: list[ConfigError]
) -> None:
    text = str(value) if not isinstance(value, bool) else ""
    if text.isascii() and text.isdigit() and int(text) <= MAX_SECONDS:
        into[name] = int(text)
    else:
        mistakes.append(document.mistake(path, f"seconds, a whole number from 0 to {MAX_SECONDS}", shown(value)))


def _pools(configuration: EstafetteConfiguration, mistakes: list[ConfigError]) -> dict[str, Any]:
    """Name → settings. The JSON may be text, or (in Helm values and by itself) already read."""
    found = configuration.value
    if not isinstance(found, dict):
        try:
            found = msgspec.json.decode(found)
        except (msgspec.DecodeError, TypeError, UnicodeError) as error:
            mistakes.append(configuration.document.mistake(configuration.path, "JSON", str(error)))
            return {}
    pools = found.get("nodePools") if isinstance(found, dict) else None
    if not isinstance(pools, dict):
        path = (*configuration.path, "nodePools")
        mistakes.append(configuration.document.mistake(path, "a mapping of pools", shown(pools)))
        return {}
    return pools


def _pool(configuration: EstafetteConfiguration, name: str, said: Any, found: EstafetteDocuments) -> Pool | None:
    """The pool of this name; None where a field makes no sense: each such field is a mistake."""
    given = said if isinstance(said, dict) else {}
    ratio = given.get("scaleDownCPURequestRatioLimit", 0)
    count = given.get("scaleDownRequiredUnderutilizedNodeCount", 0)
    is_share = isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 <= ratio <= 1
    is_count = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_COUNT
    path = (*configuration.path, "nodePools", name)
    problems = [
        configuration.document.mistake((*path, *key), expected, shown(value))
        for is_right, key, expected, value in (
            (isinstance(said, dict), (), "a mapping", said),
            (NAME.fullmatch(name) is not None, (), "the name of a GKE node pool", name),
            (is_share, ("scaleDownCPURequestRatioLimit",), "a share from 0 to 1", ratio),
            (is_count, ("scaleDownRequiredUnderutilizedNodeCount",), f"a count from 0 to {MAX_COUNT}", count),
        )
        if not is_right
    ]
    found.mistakes += problems
    if problems:
        return None
    seconds = {**CODE_SECONDS, **found.seconds}
    return replace(
        preset("balanced", name), enabled=given.get("enabled") is True, labels={POOL_LABEL: name},
        under={"cpu": round(ratio * 100), "memory": 100}, under_count=max(1, count),
        under_for=seconds[MARKED], node_age=seconds[NODE_AGE],
    )  # fmt: skip
