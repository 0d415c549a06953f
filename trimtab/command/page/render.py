"""The page's parts as values, and the page made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from jinja2 import Environment
from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One node that goes, with its moves folded per workload."""

    node: str
    saves: str
    pods: int
    moves: tuple[tuple[str, str], ...]
    """(what, where to)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One wave, or one round."""

    name: str
    nodes: int
    evictions: int
    saves: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes (or pods) that stay for the same kind of reason."""

    code: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    title: str
    headline: str
    facts: tuple[tuple[str, str], ...]
    """(number, what it is)."""
    bound: str
    before: Markup
    after: Markup
    stage: str
    """What a stage is called: Wave, Round."""
    stages: tuple[Stage, ...]
    chart: Markup
    groups: tuple[Group, ...]
    reasons: Markup
    notes: Sequence[str]


def render(page: Page) -> str:
    """One HTML document; everything that came from the cluster is escaped."""
    text = resources.files("trimtab.command.page").joinpath("page.html").read_text("utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(text).render(page=page) + "\n"
