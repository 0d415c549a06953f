"""What is wrong with what somebody wrote, where, and what should they do?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigError:
    """One mistake in one place. Readers collect all of them before anybody refuses."""

    file: str
    """As the user named it; `-` is standard input."""
    entry: str = ""
    """Which document of the file: "PodPolicy teams-burstable", or "document 3" when it has no name yet."""
    line: int | None = None
    """1-based; None where the input has no lines of its own (a review, an API object)."""
    column: int | None = None
    field: str = ""
    """Dotted path inside the document, such as spec.actions.requests.cpu.min."""
    expected: str
    got: str = ""
    todo: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"

    @property
    def place(self) -> str:
        """file:line:column, as editors and terminals link it."""
        numbers = [str(n) for n in (self.line, self.column) if n is not None]
        return ":".join([self.file, *numbers])

    @property
    def sentence(self) -> str:
        """Everything but the place: entry, field, expectation, what was found, advice."""
        subject = " ".join(part for part in (self.entry, self.field) if part)
        got = f", got {self.got}" if self.got else ""
        todo = f"; {self.todo}" if self.todo else ""
        return f"{subject}: expected {self.expected}{got}{todo}" if subject else f"expected {self.expected}{got}{todo}"


MAX_MISTAKES = 20
"""Of one document. Nobody mends more at once, and each is looked up with its line and with what may be meant."""

_LONGEST_WORD = 64
"""Characters. No name of ours is longer, so nothing longer is nearly one."""


def first_mistakes(mistakes: Sequence[ConfigError]) -> list[ConfigError]:
    """Those that are told, and that there are more."""
    if len(mistakes) <= MAX_MISTAKES:
        return list(mistakes)
    last = mistakes[MAX_MISTAKES]
    todo = f"mend these {MAX_MISTAKES} first"
    more = ConfigError(file=last.file, entry=last.entry, expected="no further mistakes", got="more of them", todo=todo)
    return [*mistakes[:MAX_MISTAKES], more]


def nearest(word: str, known: Iterable[str]) -> str:
    """ "did you mean …?" for the most alike known name; empty when nothing is alike."""
    if len(word) > _LONGEST_WORD:
        return ""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {matches[0]!r}?" if matches else ""


def shown(value: object, most: int = 60) -> str:
    """A value as a message may quote it: short, on one line."""
    text = repr(value[: most + 1]) if isinstance(value, str) else _plain(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _plain(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        first = ", ".join(str(key)[:_LONGEST_WORD] for key in islice(value, 4))
        return f"a mapping with {first or 'nothing in it'}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return str(value)
