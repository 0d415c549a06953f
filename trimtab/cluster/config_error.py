"""Mistakes in a document that an author wrote: where each one is, what was expected there, and what to do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigError:
    """One mistake at one place of a document. A reader collects all mistakes before it rejects the document."""

    file: str
    """The file as the user named it; `-` is standard input."""
    entry: str = ""
    """The document inside the file: "PodPolicy teams-burstable", or "document 3" if it has no name yet."""
    line: int | None = None
    """The line, counted from 1, or None if the input has no lines of its own (an admission review, an API object)."""
    column: int | None = None
    field: str = ""
    """The dotted path of the field inside the document, such as spec.actions.requests.cpu.min."""
    expected: str
    got: str = ""
    todo: str = ""

    def __str__(self) -> str:
        return f"{self.file_position}: {self.sentence}"

    @property
    def file_position(self) -> str:
        """The place as file:line:column, the form that editors and terminals turn into a link."""
        numbers = [str(n) for n in (self.line, self.column) if n is not None]
        return ":".join([self.file, *numbers])

    @property
    def sentence(self) -> str:
        """The message without the file position: document, field, what was expected, what is there, what to do."""
        subject = " ".join(part for part in (self.entry, self.field) if part)
        got = f", got {self.got}" if self.got else ""
        todo = f"; {self.todo}" if self.todo else ""
        return f"{subject}: expected {self.expected}{got}{todo}" if subject else f"expected {self.expected}{got}{todo}"


MAX_MISTAKES = 20
"""How many mistakes of one document are reported at most. A user fixes no more at once, and each one costs a search for
its line and for a similar name."""

# Characters. All names that Trimtab knows are shorter, so a longer word resembles none of them.
_LONGEST_WORD = 64


def first_mistakes(mistakes: Sequence[ConfigError]) -> list[ConfigError]:
    """Returns the mistakes to report: the first `MAX_MISTAKES`. If there are more, a last entry says so."""
    if len(mistakes) <= MAX_MISTAKES:
        return list(mistakes)
    last = mistakes[MAX_MISTAKES]
    todo = f"fix these {MAX_MISTAKES} mistakes first"
    more = ConfigError(file=last.file, entry=last.entry, expected="no further mistakes", got="more mistakes", todo=todo)
    return [*mistakes[:MAX_MISTAKES], more]


def suggest_name(word: str, names: Iterable[str]) -> str:
    """Returns "did you mean …?" with the most similar known name, or the first one that begins with the word, as a full
    name of a node does with a short one; an empty string if there is none."""
    if len(word) > _LONGEST_WORD:
        return ""
    names = list(names)
    matches = get_close_matches(word, names, n=1, cutoff=0.6) or [
        name for name in names if word and name.startswith(word)
    ]
    return f"did you mean {matches[0]!r}?" if matches else ""


def quote_value(value: object, max_characters: int = 60) -> str:
    """Returns a value as a message quotes it: on one line, cut after `max_characters`."""
    # Cut before `repr`: a value of many megabytes must not be escaped as a whole.
    text = repr(value[: max_characters + 1]) if isinstance(value, str) else _describe_value(value)
    return text if len(text) <= max_characters else text[: max_characters - 1] + "…"


def _describe_value(value: object) -> str:
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
