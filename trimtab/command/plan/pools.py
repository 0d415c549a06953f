"""Which pools are planned for? Those of --pools, else those in the snapshot, else what the nodes' labels say."""

from collections.abc import Sequence
from dataclasses import replace

from trimtab.cluster.documents import Document
from trimtab.cluster.estafette import imported, is_estafette
from trimtab.cluster.inventory import Inventory
from trimtab.cluster.mistake import Mistake, nearest, shown
from trimtab.cluster.pool import PRESETS, Pool, pool_name, preset
from trimtab.cluster.pool_file import KEY, PoolReading
from trimtab.cluster.pool_file import pools as read_pools
from trimtab.cluster.snapshot import kind_of

EVERYTHING = "all"
"""The name of the pool over a whole cluster."""


def found(
    given: Sequence[Document] | None, standing: Sequence[Document], inventory: Inventory, named: Sequence[str]
) -> PoolReading:
    """The pools to plan for; `given` are the documents of --pools, None without it."""
    base = _given(given) if given is not None else _standing(standing, inventory)
    chosen, mistakes = _named(named, base, inventory)
    return PoolReading(chosen, (*base.mistakes, *mistakes), base.notes if chosen is base.pools else _without(base))


def _without(base: PoolReading) -> tuple[str, ...]:
    return tuple(note for note in base.notes if not note.startswith("no pool was given"))


def _given(documents: Sequence[Document]) -> PoolReading:
    reading = _read(documents)
    if reading.pools or reading.mistakes:
        return reading
    where = documents[0].file if documents else "--pools"
    expected = f"a pool: a ConfigMap labelled trimtab.dev/pool with its settings under {KEY}"
    return PoolReading(mistakes=(Mistake(file=where, expected=expected, came="none"),))


def _standing(documents: Sequence[Document], inventory: Inventory) -> PoolReading:
    reading = _read(documents)
    if reading.pools or reading.mistakes:
        names = ", ".join(pool.name for pool in reading.pools)
        return replace(reading, notes=(*reading.notes, f"pools were found in the snapshot: {names}"))
    names = ", ".join(_labels(inventory))
    if names:
        pools = tuple(preset("balanced", name) for name in _labels(inventory))
        note = f"no pool was given: the preset balanced is taken for each pool the nodes' labels tell ({names})"
        return PoolReading(pools=pools, notes=(note,))
    note = "no pool was given and no node tells its pool: all nodes are one pool with the preset balanced"
    return PoolReading(pools=(everything("balanced"),), notes=(note,))


def _read(documents: Sequence[Document]) -> PoolReading:
    """A ConfigMap that two files tell of in the same words is one."""
    documents = tuple({repr(d.value): d for d in documents if kind_of(d.value) == "ConfigMap"}.values())
    ours, theirs = read_pools(documents), imported(documents)
    names = {pool.name for pool in ours.pools}
    twice = [_twice(documents, pool) for pool in theirs.pools if pool.name in names]
    pools = tuple(sorted((*ours.pools, *theirs.pools), key=lambda pool: pool.name))
    return PoolReading(pools, (*ours.mistakes, *theirs.mistakes, *twice), (*ours.notes, *theirs.notes))


def _twice(documents: Sequence[Document], pool: Pool) -> Mistake:
    document = next(filter(is_estafette, documents))
    return document.mistake(("data",), "a name no other pool has", pool.name)


def _labels(inventory: Inventory) -> list[str]:
    return sorted({name for node in inventory.nodes if (name := pool_name(node))})


def everything(name: str) -> Pool:
    """One pool over the whole cluster, with this preset."""
    return replace(preset(name, EVERYTHING), everything=True)


def _named(named: Sequence[str], base: PoolReading, inventory: Inventory) -> tuple[tuple[Pool, ...], list[Mistake]]:
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


def _contradictions(named: Sequence[str]) -> list[Mistake]:
    presets: dict[str, set[str]] = {}
    for text in named:
        name, _, wanted = text.partition("=")
        presets.setdefault(name, set()).add(wanted)
    return [
        Mistake(file="--pool", expected=f"one preset for {name}", came=" and ".join(sorted(wanted)))
        for name, wanted in sorted(presets.items())
        if len(wanted) > 1
    ]


def _mistake(text: str, name: str, wanted: str, known: set[str]) -> Mistake | None:
    if wanted not in PRESETS:
        expected = f"NAME=PRESET, the preset one of {', '.join(PRESETS)}"
        return Mistake(file="--pool", expected=expected, came=shown(text), todo=nearest(wanted, PRESETS))
    if name not in known and len(known) > 1:
        expected = f"a pool of this cluster, or {EVERYTHING} for all nodes"
        return Mistake(file="--pool", expected=expected, came=shown(name), todo=nearest(name, known))
    return None
