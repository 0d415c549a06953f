"""Which pools are planned for? Those of --pools, else those in the snapshot, else what the nodes' labels say."""

from collections.abc import Sequence
from dataclasses import replace

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.config_error import ConfigError, nearest, shown
from trimtab.cluster.estafette import imported, is_estafette
from trimtab.cluster.pool import POOL_LABELS, PRESETS, Pool, pool_name, pool_source, preset
from trimtab.cluster.pool_config import KEY, PoolReading
from trimtab.cluster.pool_config import pools as read_pools
from trimtab.cluster.yaml_documents import Document

EVERYTHING = "all"
"""The name of the pool over a whole cluster."""


def found(
    given: Sequence[Document] | None, standing: Sequence[Document], inventory: Inventory, named: Sequence[str]
) -> PoolReading:
    """The pools to plan for; `given` are the documents of --pools, None without it."""
    base = _given(given) if given is not None else _standing(standing, inventory)
    chosen, mistakes = _named(named, base, inventory)
    as_found = chosen is base.pools
    notes = base.notes if as_found else _without(base)
    return PoolReading(chosen, (*base.mistakes, *mistakes), notes, assumed=base.assumed and as_found)


def _without(base: PoolReading) -> tuple[str, ...]:
    return tuple(note for note in base.notes if not note.startswith("no pool was given"))


def _given(documents: Sequence[Document]) -> PoolReading:
    reading = _read([found for found in documents if found.kind == "ConfigMap" or is_estafette(found)])
    if reading.pools or reading.mistakes:
        return reading
    where = documents[0].file if documents else "--pools"
    expected = f"a pool: a ConfigMap labelled trimtab.dev/pool with its settings under {KEY}"
    return PoolReading(mistakes=(ConfigError(file=where, expected=expected, got="none"),))


def _standing(documents: Sequence[Document], inventory: Inventory) -> PoolReading:
    reading = _read([found for found in documents if found.kind == "ConfigMap"])
    if reading.pools:
        names = ", ".join(pool.name for pool in reading.pools)
        # As the compactor does: anybody who may write a ConfigMap could label a broken one, and no pool waits for it.
        left_out = tuple(f"left out: {mistake}" for mistake in reading.mistakes)
        notes = (*reading.notes, f"pools were found in the snapshot: {names}", *left_out)
        return replace(reading, mistakes=(), notes=notes)
    if reading.mistakes:
        return reading
    names = ", ".join(_labels(inventory))
    if names:
        pools = tuple(preset("balanced", name) for name in _labels(inventory))
        note = f"no pool was given: the preset balanced is taken for each pool that nodes name, {_by_source(inventory)}"
        return PoolReading(pools=pools, notes=(note,), assumed=True)
    note = "no pool was given and no node names its pool: all nodes are one pool with the preset balanced"
    return PoolReading(pools=(everything("balanced"),), notes=(note,), assumed=True)


def _by_source(inventory: Inventory) -> str:
    """The pools by the label or annotation that names them, and how many nodes have none."""
    found: dict[str, set[str]] = {}
    for node in inventory.nodes:
        name, source = pool_source(node)
        found.setdefault(source, set()).add(name)
    unnamed = sum(not pool_name(node) for node in inventory.nodes)
    named = [
        f"by the {'label' if source in POOL_LABELS else 'annotation'} {source} ({', '.join(sorted(names))})"
        for source, names in found.items() if source
    ]  # fmt: skip
    return " and ".join(named) + (f"; {unnamed} nodes name none and stay" if unnamed else "")


def _read(documents: Sequence[Document]) -> PoolReading:
    """A document that two files tell of in the same words is one."""
    documents = tuple({repr(document.value): document for document in documents}.values())
    ours, theirs = read_pools(documents), imported(documents)
    names = {pool.name for pool in ours.pools}
    twice = [_twice(documents, pool) for pool in theirs.pools if pool.name in names]
    pools = tuple(sorted((*ours.pools, *theirs.pools), key=lambda pool: pool.name))
    return PoolReading(pools, (*ours.mistakes, *theirs.mistakes, *twice), (*ours.notes, *theirs.notes))


def _twice(documents: Sequence[Document], pool: Pool) -> ConfigError:
    document = next(filter(is_estafette, documents))
    return document.mistake(("data",), "a name no other pool has", pool.name)


def _labels(inventory: Inventory) -> list[str]:
    return sorted({name for node in inventory.nodes if (name := pool_name(node))})


def everything(name: str) -> Pool:
    """One pool over the whole cluster, with this preset."""
    return replace(preset(name, EVERYTHING), everything=True)


def _named(named: Sequence[str], base: PoolReading, inventory: Inventory) -> tuple[tuple[Pool, ...], list[ConfigError]]:
    """--pool NAME=preset takes the place of the pool of that name; `all` takes the place of all."""
    pools, mistakes = {pool.name: pool for pool in base.pools}, _contradictions(named)
    for text in named:
        name, _, wanted = text.partition("=")
        if mistake := _mistake(text, name, wanted, {EVERYTHING, *pools, *_labels(inventory)}):
            mistakes.append(mistake)
        elif name == EVERYTHING:
            pools = {name: everything(wanted)}
        else:
            before = pools.get(name, Pool(name=name))
            pools[name] = replace(preset(wanted, name), labels=before.labels, everything=before.everything)
    return (tuple(pools[name] for name in sorted(pools)) if named else base.pools), mistakes


def _contradictions(named: Sequence[str]) -> list[ConfigError]:
    presets: dict[str, set[str]] = {}
    for text in named:
        name, _, wanted = text.partition("=")
        presets.setdefault(name, set()).add(wanted)
    return [
        ConfigError(file="--pool", expected=f"one preset for {name}", got=" and ".join(sorted(wanted)))
        for name, wanted in sorted(presets.items())
        if len(wanted) > 1
    ]


def _mistake(text: str, name: str, wanted: str, known: set[str]) -> ConfigError | None:
    if wanted not in PRESETS:
        expected = f"NAME=PRESET, the preset one of {', '.join(PRESETS)}"
        return ConfigError(file="--pool", expected=expected, got=shown(text), todo=nearest(wanted, PRESETS))
    if name not in known and len(known) > 1:
        expected = f"a pool of this cluster, or {EVERYTHING} for all nodes"
        return ConfigError(file="--pool", expected=expected, got=shown(name), todo=nearest(name, known))
    return None
