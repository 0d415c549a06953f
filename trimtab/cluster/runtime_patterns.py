"""The types of the table of language runtimes, and the patterns that its rows share.

All patterns are valid for Python and for RE2, because compiled policies use them in CEL. They have no nested
repetitions, because the texts come from users.
"""

import re
from dataclasses import dataclass

CPU, MEMORY = "cpu", "memory"


NOT_ZERO = "[^0-9].*|.*[1-9].*"
"""The value of a variable that tells a size, such as `512m` or `0x20000000`; `0`, `0.0` and `0Gi` are none."""
# Repetitions are bounded, so that the time of a search grows only with the length of the text.
OWN_SIZE = "(0{0,20}([.]0{0,20})?[1-9]|[\"'$])"
"""The beginning of a size, or of a shell variable that holds one."""
OPTION_VALUE = "[=:,\\s]{1,4}"
"""What is between an option and its value."""


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A pattern that is searched in the values of variables and in each argument of the command line."""

    literal: str
    """A text that each match contains: a text without it is not searched."""
    expression: str = ""
    """The regular expression; empty if the literal itself is searched."""
    other_literals: tuple[str, ...] = ()
    """If there are any, each match contains the literal or one of these."""

    @property
    def literals(self) -> tuple[str, ...]:
        """The texts of which each match contains one."""
        return (self.literal, *self.other_literals)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSetting:
    """A setting with which a runtime no longer depends on a limit."""

    frees: tuple[str, ...]
    """The resources whose limits no longer matter."""
    options: tuple[TextPattern, ...] = ()
    variable: str = ""
    """A pattern for the whole name of a variable; empty if the setting is an option."""
    value: str = NOT_ZERO
    """A pattern for the whole value of the variable."""
    frees_unseen: bool = True
    """Whether the variable frees the limits as well if its value is not in the pod (`valueFrom`)."""
    is_switch: bool = False
    """Whether the setting turns the reading of a limit off. Any other setting tells a size: zero or an empty value
    tells none, because it means the default."""


@dataclass(frozen=True, slots=True)
class TellingValue:
    """A variable that several programs read, with the value that only one runtime understands."""

    variable: str
    """The name of the variable."""
    expression: str
    """A pattern for the whole value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A runtime or server: how it is recognized, and which limits it reads."""

    name: str
    """The runtime as messages name it, with its article."""
    reads: tuple[str, ...]
    """The resources whose limits it reads by default."""
    source: str
    """Where this is documented."""
    words: tuple[str, ...] = ()
    """Words of an image's name or tag, in lower case and without digits: `java` for `distroless/java17-debian12`."""
    images: tuple[str, ...] = ()
    """Last parts of image names, without tag: `cp-kafka` for `confluentinc/cp-kafka:7`."""
    label_words: tuple[str, ...] = ()
    """Words in labels that name a runtime or a language, in addition to `words`."""
    usual_variables: tuple[str, ...] = ()
    """Variables that only this runtime reads, by their whole names. Messages name them."""
    variable: str = ""
    """A pattern that is searched in the names of all other variables."""
    telling_values: tuple[TellingValue, ...] = ()
    """Variables that show this runtime only with such a value."""
    limit_options: tuple[TextPattern, ...] = ()
    """Options that take a share of a limit."""
    options: tuple[TextPattern, ...] = ()
    """Options of this runtime that do not mention limits."""
    programs: tuple[str, ...] = ()
    """Names of programs that are started, without a path and a version."""
    files: tuple[str, ...] = ()
    """Suffixes of files that only this runtime runs."""
    settings: tuple[SizeSetting, ...] = ()
    overriding_options: tuple[TextPattern, ...] = ()
    """Options that make the runtime read its memory limit whatever `settings` say."""


_ESCAPED = re.compile("[.+]")


def _escape(match: re.Match[str]) -> str:
    # Not `re.escape`, which the reference page would be hard to read with.
    return f"[{match[0]}]"


def size_option(option: str, between: str = OPTION_VALUE) -> TextPattern:
    """Returns the pattern of an option that tells a size."""
    return TextPattern(option, f"{_ESCAPED.sub(_escape, option)}{between}{OWN_SIZE}")
