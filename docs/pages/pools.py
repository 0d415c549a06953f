"""docs/reference/pool.md: the settings of a pool, from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.cluster.documents.declared_fields import ANY_KEY, DeclaredField, DocumentField, iterate_fields
from trimtab.cluster.pool import PRESET, PRESETS, Headroom, Pool

_HEAD = """\
# A pool's settings

One ConfigMap per pool, labelled `trimtab.dev/pool: NAME`, with YAML under `pool.yaml`. Every field is optional; what is
not said comes from the preset. All mistakes are reported together, each with line and field, and a pool with a mistake
is not used. Nothing is done before it says `mode: act`; a plan is always made. The compactor reads the ConfigMaps of
its own namespace only. `trimtab pools check FILE` and `trimtab pools check --cluster live` report the same mistakes,
and pools that no node belongs to. In brackets below are the defaults of the preset `balanced`.
"""
_TAIL = """
## What `kubectl` shows of a pool

The compactor writes what each pool does into a `PoolStatus` of its own namespace:

    kubectl get pools --namespace trimtab-system

The columns are the mode, the nodes, the nodes that are being drained, the nodes that are next, what the removed nodes
save, when the compactor wrote this last (at least every five minutes, or no compactor works), and what the pool waits
for; `-o wide` adds the size of the first wave, and `-o yaml` has the plan. A `PoolStatus` is for reading only. No
process reads one, only the compactor may write one, and a pool's settings are in its ConfigMap alone
([decision 19](../decisions/0019-a-pool-status-is-only-read-by-people.md)).

Some pods always stay. The [reasons for pods](reasons.md) name them, and `trimtab explain CODE` explains each one, for
example `trimtab explain pod-without-owner`. `trimtab plan` and `trimtab simulate` also read an estafette
node-compactor's configuration; the compactor itself does not:
[move it over](../how-to/from-rehearsal-to-act.md#from-an-estafette-node-compactor).
"""


def page(docs_of: Callable[[Any], Mapping[str, str]]) -> str:
    """docs_of: class → field → its text."""
    rows = [
        f"- {', '.join(f'`{name}`' for name in names)}{f' ({default})' if default else ''}: {means}"
        for names, default, means in rows_of(docs_of)
    ]
    return "\n".join([_HEAD, *rows, _TAIL])


def rows_of(docs_of: Callable[[Any], Mapping[str, str]]) -> list[tuple[list[str], str, str]]:
    """(names of settings, default, meaning) of each row. A name that begins with a dot is in the section of the first
    name. A setting without words is described in the row of its section."""
    docs = {(name,): text for name, text in docs_of(Pool).items()}
    docs |= {("headroom", name): text for name, text in docs_of(Headroom).items()}
    rows: list[tuple[list[str], list[str], str]] = []
    for declared in (DeclaredField(PRESET, (PRESET.key,)), *iterate_fields(Pool)):
        setting, target = declared.document, declared.target
        if setting.instead_of:
            continue
        # The docstring of a mapping of options describes all of its entries.
        means = setting.words or docs.pop(target[:1] if setting.entry else target, "")
        if setting.shares_row:
            names, defaults, _ = rows[-1]
            names += _names(setting)
            defaults += _defaults(declared)
        elif means:
            rows.append((_names(setting), _defaults(declared), means))
    return [(names, ", ".join(defaults), means) for names, defaults, means in rows]


def _names(setting: DocumentField) -> list[str]:
    if setting.keys is None:
        return [setting.path.rpartition(".")[0] if setting.entry else setting.path]
    first, *others = [*setting.keys.names, setting.keys.placeholder]
    return [setting.path.replace(ANY_KEY, first), *(f".{name}" for name in others)]


def _defaults(declared: DeclaredField) -> list[str]:
    setting = declared.document
    if setting.default is not None:
        return [setting.default]
    if setting.entry:
        return []
    value: Any = PRESETS["balanced"]
    for name in declared.target:
        value = getattr(value, name)
    values = value.values() if isinstance(value, Mapping) else [] if value == () else [value]
    return [_quote(setting.type.write(one)) for one in values]


def _quote(text: str) -> str:
    return text if text.isdecimal() else f"`{text}`"
