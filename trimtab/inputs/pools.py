"""The pools to plan for: those of --pools, else those in the snapshot, else those that labels of the nodes name."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.config_error import ConfigError, quote_value, suggest_name
from trimtab.cluster.estafette import import_pools, is_estafette_document
from trimtab.cluster.format_count import format_count
from trimtab.cluster.pool import PRESETS, Pool, pool_from_preset, pool_name, pool_source
from trimtab.cluster.pool_config import SETTINGS_KEY, PoolReading, read_pools
from trimtab.cluster.pool_labels import POOL_LABEL, POOL_LABELS, candidate_labels
from trimtab.cluster.yaml_documents import Document

WHOLE_CLUSTER = "all"
"""The name of a pool that contains the whole cluster."""


def find_pools(
    option_documents: Sequence[Document] | None,
    snapshot_documents: Sequence[Document],
    inventory: Inventory,
    named: Sequence[str],
) -> PoolReading:
    """Returns the pools to plan for, with the presets of --preset applied.

    `option_documents`: the documents of --pools; None without the option. `named`: the values of --pool.
    """
    base = (
        _pools_of_option(option_documents)
        if option_documents is not None
        else _pools_of_snapshot(snapshot_documents, inventory)
    )
    pools, mistakes = _apply_presets(named, base, inventory)
    is_unchanged = pools is base.pools
    notes = base.notes if is_unchanged or not base.assumed else tuple(_note_other_pools(base, named))
    return PoolReading(pools, (*base.mistakes, *mistakes), notes, assumed=base.assumed and is_unchanged)


def _note_other_pools(reading: PoolReading, named: Sequence[str]) -> Iterator[str]:
    """Yields a note about the pools that have the preset balanced because --preset names no preset for them."""
    named_pools = {text.partition("=")[0] for text in named}
    names = ", ".join(pool.name for pool in reading.pools if not {pool.name, WHOLE_CLUSTER} & named_pools)
    if names:
        yield (
            "the snapshot contains no settings of a pool, so these pools, for which --preset names no preset, have the "
            f"preset balanced: {names}"
        )


def _pools_of_option(documents: Sequence[Document]) -> PoolReading:
    reading = _read_both_formats(
        [document for document in documents if document.kind == "ConfigMap" or is_estafette_document(document)]
    )
    if reading.pools or reading.mistakes:
        return reading
    where = documents[0].file if documents else "--pools"
    expected = f"a pool: a ConfigMap labelled trimtab.dev/pool with its settings under {SETTINGS_KEY}"
    return PoolReading(mistakes=(ConfigError(file=where, expected=expected, got="none"),))


def _pools_of_snapshot(documents: Sequence[Document], inventory: Inventory) -> PoolReading:
    reading = _read_both_formats([document for document in documents if document.kind == "ConfigMap"])
    if reading.pools:
        names = ", ".join(pool.name for pool in reading.pools)
        # As the compactor does: an account that may write ConfigMaps could label a broken one, and no pool waits for
        # it.
        left_out = tuple(f"an invalid pool is ignored: {mistake}" for mistake in reading.mistakes)
        notes = (*reading.notes, f"the plan uses the pools of the snapshot: {names}", *left_out)
        return replace(reading, mistakes=(), notes=notes)
    if reading.mistakes:
        return reading
    names = ", ".join(_pool_names(inventory))
    if names:
        pools = tuple(pool_from_preset("balanced", name) for name in _pool_names(inventory))
        note = (
            "neither the snapshot nor the command line contains settings of a pool, so each pool that nodes name has "
            f"the preset balanced; nodes name their pool {_describe_sources(inventory)}"
        )
        return PoolReading(pools=pools, notes=(note,), assumed=True)
    if inventory.nodes and not inventory.machines:
        note = "no node of the snapshot is a machine that you pay for, so there is nothing to plan"
        return PoolReading(pools=(build_whole_cluster_pool("balanced"),), notes=(note,), assumed=True)
    note = (
        "neither the snapshot nor the command line contains settings of a pool, and no node names its pool, so all "
        f"nodes are one pool with the preset balanced{_describe_candidates(inventory)}"
    )
    return PoolReading(pools=(build_whole_cluster_pool("balanced"),), notes=(note,), assumed=True)


def _describe_candidates(inventory: Inventory) -> str:
    """Returns a text about the labels that divide the nodes into groups, so that they may name pools; empty if there
    are none."""
    candidates = candidate_labels(node.labels for node in inventory.machines)
    if not candidates:
        return ""
    names = ", ".join(f"{one.key} ({format_count(one.groups, 'value')})" for one in candidates)
    return (
        f"; these labels divide the nodes into groups: {names}; if one of them names your pools, set `nodes.labels` in "
        f"the settings of each pool, or the label {POOL_LABEL} on the nodes"
    )


def _describe_sources(inventory: Inventory) -> str:
    """Returns a text about the labels or annotations that name the pools of nodes.

    It also gives the number of nodes that have no such label or annotation."""
    pools_by_source: dict[str, set[str]] = {}
    for node in inventory.machines:
        name, source = pool_source(node)
        pools_by_source.setdefault(source, set()).add(name)
    unnamed = sum(not pool_name(node) for node in inventory.machines)
    phrases = [
        f"by the {'label' if source in POOL_LABELS else 'annotation'} {source} ({', '.join(sorted(names))})"
        for source, names in pools_by_source.items()
        if source
    ]
    return " and ".join(phrases) + (
        f"; {format_count(unnamed, 'node names no pool and is', 'nodes name no pool and are')} not drained"
        if unnamed
        else ""
    )


def _read_both_formats(documents: Sequence[Document]) -> PoolReading:
    """Returns the pools of Trimtab's ConfigMaps and of estafette's, sorted by name.

    Two equal documents in two files count as one.
    """
    # The same object may be in a file of --pools and in a List of another one.
    documents = tuple({repr(document.value): document for document in documents}.values())
    trimtab_pools, estafette_pools = read_pools(documents), import_pools(documents)
    names = {pool.name for pool in trimtab_pools.pools}
    duplicates = [_duplicate_name_mistake(documents, pool) for pool in estafette_pools.pools if pool.name in names]
    pools = tuple(sorted((*trimtab_pools.pools, *estafette_pools.pools), key=lambda pool: pool.name))
    return PoolReading(
        pools,
        (*trimtab_pools.mistakes, *estafette_pools.mistakes, *duplicates),
        (*trimtab_pools.notes, *estafette_pools.notes),
    )


def _duplicate_name_mistake(documents: Sequence[Document], pool: Pool) -> ConfigError:
    document = next(filter(is_estafette_document, documents))
    return document.error_at(("data",), "a name that no other pool has", pool.name)


def _pool_names(inventory: Inventory) -> list[str]:
    return sorted({name for node in inventory.machines if (name := pool_name(node))})


def build_whole_cluster_pool(preset_name: str) -> Pool:
    """Returns one pool that contains the whole cluster, with the preset of this name."""
    return replace(pool_from_preset(preset_name, WHOLE_CLUSTER), everything=True)


def _apply_presets(
    named: Sequence[str], reading: PoolReading, inventory: Inventory
) -> tuple[tuple[Pool, ...], list[ConfigError]]:
    """Apply --preset POOL=PRESET to the pools of `reading`: POOL names the pool to replace, `all` every pool.

    A replaced pool keeps its labels. Returns the pools and the mistakes in the options.
    """
    pools, mistakes = {pool.name: pool for pool in reading.pools}, _find_contradictions(named)
    for text in named:
        name, _, preset_name = text.partition("=")
        if mistake := _check_preset(text, name, preset_name, {WHOLE_CLUSTER, *pools, *_pool_names(inventory)}):
            mistakes.append(mistake)
        elif name == WHOLE_CLUSTER:
            pools = {name: build_whole_cluster_pool(preset_name)}
        else:
            replaced_pool = pools.get(name, Pool(name=name))
            pools[name] = replace(
                pool_from_preset(preset_name, name), labels=replaced_pool.labels, everything=replaced_pool.everything
            )
    return (tuple(pools[name] for name in sorted(pools)) if named else reading.pools), mistakes


def _find_contradictions(named: Sequence[str]) -> list[ConfigError]:
    presets: dict[str, set[str]] = {}
    for text in named:
        name, _, preset_names = text.partition("=")
        presets.setdefault(name, set()).add(preset_names)
    return [
        ConfigError(file="--preset", expected=f"one preset for {name}", got=" and ".join(sorted(preset_names)))
        for name, preset_names in sorted(presets.items())
        if len(preset_names) > 1
    ]


def _check_preset(text: str, name: str, preset_name: str, pool_names: set[str]) -> ConfigError | None:
    if preset_name not in PRESETS:
        expected = f"POOL=PRESET, where the preset is one of {', '.join(PRESETS)}"
        return ConfigError(
            file="--preset", expected=expected, got=quote_value(text), todo=suggest_name(preset_name, PRESETS)
        )
    if name not in pool_names and len(pool_names) > 1:
        expected = f"a pool of this cluster, or {WHOLE_CLUSTER} for all nodes"
        return ConfigError(
            file="--preset", expected=expected, got=quote_value(name), todo=suggest_name(name, pool_names)
        )
    return None
