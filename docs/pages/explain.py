"""trimtab/cli/catalog.json: every name that `trimtab explain` knows, from the declarations themselves.

`python -m docs.pages.explain` writes it; deploy/release/catalog_hook.py does so when Trimtab is installed or built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deploy.observe import exported
from docs.pages import drain_order, policy_language, pools, schemas, settings, words
from docs.pages.field_docs import attribute_docs, describe_type, own_docs
from docs.pages.marks import MARKS
from docs.pages.reason_codes import product_codes
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.cli.catalog import (
    ALERT,
    CHECK,
    METRIC,
    ORDER_FIELD,
    POLICY_FIELD,
    POOL_FIELD,
    REASON,
    RULE,
    SETTING,
    CatalogEntry,
    encode_catalog,
)
from trimtab.cli.doctor.command import CHECKS
from trimtab.cluster.reason import Code
from trimtab.policy.schema import spec_schema

ROOT = Path(__file__).resolve().parents[2]
POOL_PAGE = ROOT / "docs" / "reference" / "pool.md"
RUNBOOKS = ROOT / "docs" / "how-to" / "runbooks.md"
DOCS = "docs/reference"


def catalog() -> str:
    """Return the file's text."""
    return encode_catalog(
        [
            *(_of_code(code) for code in product_codes()),
            *(
                CatalogEntry(
                    kind=RULE,
                    name=rule.code,
                    means=_plain(f"{rule.title}. {rule.why} Source: {rule.source}."),
                    todo=_plain(rule.fix),
                    page=f"{DOCS}/lint.md#{rule.code.lower()}",
                )
                for rule in ALL_RULES
            ),
            *(
                CatalogEntry(
                    kind=CHECK, name=check.name, means=_plain(check.asks), page=f"{DOCS}/doctor.md#{check.name}"
                )
                for check in CHECKS
            ),
            *_alerts(),
            *_settings(),
            *(
                entry
                for name, schema in spec_schema()["properties"].items()
                for entry in _field(f"spec.{name}", schema)
            ),
            *_pool_fields(),
            *(
                CatalogEntry(
                    kind=ORDER_FIELD,
                    name=f"drainorder.spec.{path}",
                    means=_plain(means),
                    value=value,
                    page=f"{DOCS}/drain-order.md",
                )
                for path, value, means in drain_order.spec_fields()
            ),
            *(
                CatalogEntry(
                    kind=mark.kind,
                    name=mark.name,
                    means=_plain(f"{mark.means} Written by {mark.by}."),
                    todo=_plain(mark.todo),
                    value=f"on {mark.on}",
                    page=f"{DOCS}/marks.md",
                )
                for mark in MARKS
            ),
            *_metrics(),
            *words.vocabulary(),
            *words.report_fields(schemas.list_reports(), own_docs),
        ]
    )


def _metrics() -> Iterator[CatalogEntry]:
    """A metric of several processes has one entry, which names them."""
    processes: dict[str, list[str]] = {}
    metrics = {}
    for metric in exported.everything():
        processes.setdefault(metric.name, []).append(metric.process)
        metrics.setdefault(metric.name, metric)
    for name, metric in metrics.items():
        labels = f" by {', '.join(metric.labels)}" if metric.labels else ""
        unit = f", in {metric.unit}" if metric.unit else ""
        means = f"{metric.says} Exported by trimtab {join_words(processes[name])}."
        page = f"{DOCS}/metrics.md#trimtab-{metric.process}"
        yield CatalogEntry(kind=METRIC, name=name, means=_plain(means), value=f"{metric.kind}{labels}{unit}", page=page)


def join_words(words: Sequence[str]) -> str:
    """The words as a list in a sentence."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _of_code(code: Code) -> CatalogEntry:
    page = f"{DOCS}/reasons.md#{code.name}"
    return CatalogEntry(kind=REASON, name=code.name, means=_plain(code.means), todo=_plain(code.todo), page=page)


def _settings() -> Iterator[CatalogEntry]:
    """A variable that several processes read has one entry, which names them."""
    processes: dict[str, list[str]] = {}
    first: dict[str, settings.Setting] = {}
    for setting in settings.list_settings():
        processes.setdefault(setting.variable, []).append(setting.process)
        first.setdefault(setting.variable, setting)
    for name, setting in first.items():
        means = f"{_plain(setting.text)} Read by trimtab {join_words(processes[name])}."
        page = f"{DOCS}/settings.md#{settings.find_heading(setting)}"
        yield CatalogEntry(kind=SETTING, name=name, means=means, value=setting.default, page=page)


def _field(path: str, schema: dict[str, Any]) -> Iterator[CatalogEntry]:
    mark, inner = policy_language.inner_of(schema)
    default = schema.get("default")
    kind = describe_type(schema) + ("" if default is None else f", default {str(default).lower()}")
    yield CatalogEntry(
        kind=POLICY_FIELD,
        name=path,
        means=_plain(schema.get("description", "")),
        value=_bare(kind),
        page=f"{DOCS}/policy-language.md#{policy_language.find_heading(path)}",
    )
    for name, part in inner.get("properties", {}).items():
        yield from _field(f"{path}{mark}.{name}", part)


def _alerts() -> Iterator[CatalogEntry]:
    """The runbooks: what an alert means, what to check, and what to do."""
    for section in re.split(r"^## ", RUNBOOKS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("\n")
        parts = dict(re.findall(r"^\*\*(Means|Check|Do)\*\* (.*?)(?=\n\n|\Z)", text.strip(), re.MULTILINE | re.DOTALL))
        if "Means" in parts:
            todo = "\n".join(
                f"{title}: {_plain(parts[word], RUNBOOKS)}"
                for word, title in (("Check", "Check"), ("Do", "Then"))
                if word in parts
            )
            yield CatalogEntry(
                kind=ALERT,
                name=name.strip(),
                means=_plain(parts["Means"], RUNBOOKS),
                todo=todo,
                page=f"docs/how-to/runbooks.md#{name.strip().lower()}",
            )


def _pool_fields() -> Iterator[CatalogEntry]:
    """The rows of the page on pools; a row may have several fields."""
    for names, default, text in pools.rows_of(attribute_docs):
        section = names[0].rpartition(".")[0]
        for name in names:
            full = f"{section}{name}" if name.startswith(".") else name
            value, means = _bare(default), _plain(text, POOL_PAGE)
            yield CatalogEntry(kind=POOL_FIELD, name=full, means=means, value=value, page=f"{DOCS}/pool.md")


def _plain(text: str, page: Path | None = None) -> str:
    """The text as a terminal shows it: commands and values stay in backticks, and links become their text. Of a page's
    own text, a link to another page is that page in brackets."""

    def name_target(link: re.Match[str]) -> str:
        if page is None or not re.match(r"[\w./-]+\.md\b", link[2]):
            return link[1]
        target = (page.parent / link[2]).resolve().relative_to(ROOT)
        return f"{link[1]} ({target})"

    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", name_target, " ".join(text.split())).replace("**", "")


def _bare(text: str) -> str:
    """A value without backticks."""
    return _plain(text).replace("`", "")


if __name__ == "__main__":
    (ROOT / "trimtab" / "cli" / "catalog.json").write_text(catalog(), encoding="utf-8")
