"""The command line of `trimtab explain`, its report, and its text for terminals."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import click
from rich.text import Text

from trimtab.cli.catalog import ALERT, CatalogEntry, find_children, find_entries, load_catalog, suggest_entries
from trimtab.cli.complete_names import complete_explained_names
from trimtab.cli.explain.verb_options import find_options
from trimtab.cli.options import takes
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import Column, Paragraph, ReportView, Section
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.option import Argument


class ExplainedFieldReport(ReportPart, frozen=True, kw_only=True):
    """A field inside an explained field."""

    name: str
    """The path of the field inside the explained one."""
    value: str
    """The type or the default of the field."""
    means: str
    """What the field means, in one text."""


class ExplanationReport(ReportPart, frozen=True, kw_only=True):
    """One explained name with its meaning."""

    kind: str
    """reason, rule, check, alert, setting, policy field, pool field, DrainOrder field, annotation, label, taint,
    metric, word, column, report field or option."""
    name: str
    """The explained name as Trimtab writes it, whatever its case was on the command line."""
    value: str
    """The type of a field, the default of a setting, the labels and the unit of a metric, the verbs with an option, the
    kinds that have an annotation, label or taint, the origin of a word, or the commands that print a column; empty for
    all other names."""
    means: str
    """What the name means, in one text."""
    todo: str
    """What the user should do; empty if nothing is to be done."""
    page: str
    """The page of the documentation in the sources, with its anchor."""
    fields: list[ExplainedFieldReport]
    """The fields directly inside the explained field; empty for everything else."""


class ExplanationsReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab explain`. Published as deploy/schemas/explanations-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab explain NAME"
    api_version: str = API_VERSION
    kind: str = "ExplanationsReport"
    explanations: list[ExplanationReport]
    """The explanations, in the order of the names on the command line; a name may have several."""


_VALUE_TITLES = {
    "setting": "Default",
    "policy field": "Type",
    "pool field": "Default",
    "DrainOrder field": "Type",
    "metric": "Type",
    "option": "Verbs",
    "report field": "Type",
    "word": "From",
    "column": "Printed by",
    **dict.fromkeys(("annotation", "label", "taint"), "Where"),
}


def _describe_explanations(report: ExplanationsReport) -> Iterator[Paragraph]:
    """Yields each explanation: the name, its meaning, what to do, and the fields inside it."""
    for number, explanation in enumerate(report.explanations):
        if number:
            yield ""
        yield Text.assemble((explanation.name, "bold"), f"  ({explanation.kind})")
        if explanation.value:
            yield Text(f"{_VALUE_TITLES.get(explanation.kind, 'Value')}: {explanation.value}")
        if explanation.means:
            yield _set_commands_apart(explanation.means)
        title = "" if explanation.kind == ALERT else "What to do: "  # an alert has what to check first
        for line in explanation.todo.splitlines():
            yield Text.assemble((title, "bold"), _set_commands_apart(line))
        for field in explanation.fields:
            yield Text.assemble((f"  {field.name}", "bold"), f"  <{field.value}>  ", _set_commands_apart(field.means))
        yield Text(f"See the documentation: {explanation.page}", style="bright_black")


def _set_commands_apart(text: str) -> Text:
    """Returns the text with everything in backticks in bold. The backticks stay: a pipe has no bold."""
    styled = Text(text)
    styled.highlight_regex(r"`[^`]+`", "bold")
    return styled


VIEW: ReportView[ExplanationsReport] = ReportView(
    title="trimtab explain",
    sections=(
        Section(
            key="explanations",
            rows=lambda report: report.explanations,
            columns=(
                Column("kind", lambda one: one.kind),
                Column("name", lambda one: one.name),
                Column("value", lambda one: one.value),
                Column("means", lambda one: one.means),
                Column("fix", lambda one: one.todo),
                Column("page", lambda one: one.page),
            ),
            name=lambda one: f"{one.kind}/{one.name}",
            lines=_describe_explanations,
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """The options of `trimtab explain`."""

    names: Annotated[tuple[str, ...], Argument("NAME...", complete=complete_explained_names)]
    output: ReportOutput


@click.command("explain", context_settings={"ignore_unknown_options": True})
@takes(ExplainOptions)
def verb(options: ExplainOptions) -> None:
    """Explain a reason code, an alert, a setting, a field of a policy, a pool or a report, a rule of lint, a check of
    doctor, an annotation, a label, a taint, a metric, an option of a verb, a column of a table, a preset or a word.

    NAME is for example webhook-not-registered, TRIMTAB_WEBHOOK_LISTEN, spec.actions.requests, pace.drains, plan.waves,
    L35, trimtab.dev/cordoned-for, trimtab_reviews_total, "more nodes", balanced or wave. The texts are in the package:
    neither a cluster nor the network is used.
    """
    report = build_explanations_report(options.names)
    write_report(options.output, report, VIEW)


def build_explanations_report(names: tuple[str, ...]) -> ExplanationsReport:
    """Returns the explanations of all names. Raises UsageError with every unknown name."""
    catalog = load_catalog()
    entries_by_name = {
        name: find_options(name) if name.startswith("--") else find_entries(catalog, name) for name in names
    }
    mistakes = []
    for name, entries in entries_by_name.items():
        if not entries:
            near = suggest_entries(catalog, name)
            todo = f"did you mean {', '.join(near)}?" if near else "for a policy: trimtab policies explain NAME"
            expected = (
                "a reason code, an alert, a setting, a field, a rule, a check, a metric, an option of a verb, a "
                "column, a preset, a word of the vocabulary, or the key of an annotation, label or taint"
            )
            mistakes.append(ConfigError(file="NAME", expected=expected, got=repr(name), todo=todo))
    if mistakes:
        raise UsageError(mistakes)
    unique_entries = dict.fromkeys(entry for entries in entries_by_name.values() for entry in entries)
    return ExplanationsReport(explanations=[_explain(entry, find_children(catalog, entry)) for entry in unique_entries])


def _explain(entry: CatalogEntry, children: list[CatalogEntry]) -> ExplanationReport:
    return ExplanationReport(
        kind=entry.kind,
        name=entry.name,
        value=entry.value,
        means=entry.means,
        todo=entry.todo,
        page=entry.page,
        fields=[ExplainedFieldReport(name=child.name, value=child.value, means=child.means) for child in children],
    )
