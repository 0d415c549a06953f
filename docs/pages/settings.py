"""docs/reference/settings.md: the environment variables of the processes; what several of them read stands once."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from docs.pages.field_docs import attribute_docs
from docs.pages.sentences import first_sentence
from trimtab.compactor.settings import Settings as CompactorSettings
from trimtab.metricsapi.settings import Settings as MetricsApiSettings
from trimtab.recommender.settings import Settings as RecommenderSettings
from trimtab.runtime.environment import variable_name, write_environment
from trimtab.runtime.settings import Settings as WebhookSettings
from trimtab.watchdog.settings import Settings as WatchdogSettings

PROCESS_SETTINGS: tuple[tuple[str, Any], ...] = (
    ("webhook", WebhookSettings),
    ("watchdog", WatchdogSettings),
    ("compactor", CompactorSettings),
    ("recommender", RecommenderSettings),
    ("metrics-api", MetricsApiSettings),
)
_FEWER_WORDS = {
    "The number of seconds": "Seconds",
    "The longest time in seconds": "The longest time",
    "The path of a (?=.*file)": "A ",
    "The name of the": "The",
}
"""How a text begins → what the page has in its place."""
_SHARED = "Settings of several processes"
_HEAD = f"""\
# Settings

Every process reads its settings from environment variables, and reports all mistakes in them together. A process
ignores the variables of the others, so that one ConfigMap can hold the settings of all. After `=` is the default; a
variable without one is not set. `trimtab explain VARIABLE` prints the whole text.

## {_SHARED}

Variables without a process in their name are those on which the processes of one installation must agree, and the
form of the logs.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable of one process."""

    process: str
    variable: str
    field: str
    default: str
    text: str


def list_settings() -> tuple[Setting, ...]:
    """Returns every variable of every process."""
    return tuple(setting for process, kind in PROCESS_SETTINGS for setting in _iterate_settings(process, kind))


def _iterate_settings(process: str, kind: Any) -> Iterator[Setting]:
    docs, defaults = attribute_docs(kind), write_environment(kind())
    for field in fields(kind):
        variable = variable_name(kind.process, field.name)
        yield Setting(process, variable, field.name, str(defaults.get(variable) or ""), docs[field.name])


def page() -> str:
    """Returns the page's text."""
    groups = _group_settings()
    lines = [_HEAD, *(_describe_group(group) for group in groups if len(group) > 1), ""]
    for process, _ in PROCESS_SETTINGS:
        own = [group for group in groups if len(group) == 1 and group[0].process == process]
        lines += [f"## trimtab {process}\n", *map(_describe_group, own), ""]
    return "\n".join(lines)


def find_heading(setting: Setting) -> str:
    """Returns the anchor of the heading under which the page describes a setting."""
    is_shared = any(setting in group for group in _group_settings() if len(group) > 1)
    return _SHARED.lower().replace(" ", "-") if is_shared else f"trimtab-{setting.process}"


@cache
def _group_settings() -> tuple[tuple[Setting, ...], ...]:
    """Returns the settings of all processes; those of one name and meaning are one group."""
    groups: dict[tuple[str, str], list[Setting]] = {}
    for setting in list_settings():
        groups.setdefault((setting.field, _summarize(setting.text)), []).append(setting)
    return tuple(map(tuple, groups.values()))


def _describe_group(group: Sequence[Setting]) -> str:
    names = dict.fromkeys(f"`{one.variable}{f'={one.default}' if one.default else ''}`" for one in group)
    return f"- {', '.join(names)}: {_summarize(group[0].text)}"


def _summarize(text: str) -> str:
    """Returns the first sentence, and what it means that the variable is not set. The variable's name has the unit."""
    for words, fewer in _FEWER_WORDS.items():
        text = re.sub(rf"^{words}\b", fewer, text)
    unset = [part for part in text.split(". ") if part.startswith(("None:", "Empty:"))]
    return " ".join([first_sentence(text), *(f"{part.rstrip('.')}." for part in unset)])
