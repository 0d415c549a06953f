"""Go's regular expressions, as far as they mean the same in Python's `re`.

The cluster autoscaler compiles its patterns with Go's `regexp` (RE2 syntax). The two languages share most of the syntax
but differ in details: `$` is the very end in Go, classes are ASCII, a second `+` after a repetition is a mistake in Go
and possessive in Python, and Go has neither look-around nor back references. A pattern is translated only if every
construct in it is known to mean the same. A mistake is reported as a mistake; for everything else, the result says that
the pattern cannot be judged.
"""

import re
from dataclasses import dataclass

MAX_REPEATS = 1000
"""The largest number of repetitions that Go accepts."""
_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_CLASS_ESCAPES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_OPERATORS = ("&&", "||", "--", "~~", "[")


@dataclass(frozen=True, slots=True)
class InvalidPattern:
    """A pattern that Go's package `regexp` does not accept."""

    problem: str


@dataclass(frozen=True, slots=True)
class UnjudgedPattern:
    """A pattern that Python would read differently from Go, or not at all."""

    construct: str


class _Invalid(Exception):
    pass


class _Unjudged(Exception):
    pass


def compile_go_regexp(text: str) -> re.Pattern[str] | InvalidPattern | UnjudgedPattern:
    """Returns the pattern for use with `search`, or says why there is none. Go searches too, so the pattern is not
    anchored."""
    try:
        translated = _Translator(text).translate()
        return re.compile(translated, re.ASCII)
    except _Invalid as error:
        return InvalidPattern(str(error))
    except _Unjudged as error:
        return UnjudgedPattern(str(error))
    except (re.error, OverflowError, RecursionError) as error:
        return UnjudgedPattern(str(error))


def quote_group_name(name: str) -> str:
    """Returns a pattern that matches exactly this name."""
    return "^" + re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", name) + "$"


class _Translator:
    """Reads a pattern once from left to right, and stops at the first construct that it does not know."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.repeats = 1

    def translate(self) -> str:
        if not self.text.isascii():
            raise _Unjudged("characters outside of ASCII")
        parts: list[str] = []
        depth, can_repeat, was_repeated = 0, False, False
        while self.position < len(self.text):
            char = self.text[self.position]
            repeat = self._read_repeat(char)
            if repeat is not None:
                if was_repeated:
                    raise _Invalid("a repetition operator follows another repetition operator")
                if not can_repeat:
                    starts = not parts or parts[-1] in ("(", "(?:", "|")
                    raise (_Invalid if starts else _Unjudged)("a repetition operator has nothing to repeat")
                parts.append(repeat)
                was_repeated = True
                continue
            was_repeated = False
            self.position += 1
            can_repeat = char not in "(|^$"
            if char == "(":
                parts.append(self._read_group())
                depth += 1
            elif char == ")":
                depth -= 1
                if depth < 0:
                    raise _Invalid("a parenthesis is closed but was not opened")
                parts.append(char)
            elif char == "[":
                parts.append(self._read_class())
            elif char == "\\":
                parts.append(self._read_escape())
                can_repeat = parts[-1] not in (r"\b", r"\B", r"\A", r"\Z")
            else:
                parts.append({"$": r"\Z", "^": r"\A", "{": r"\{"}.get(char, char))
        if depth:
            raise _Invalid("a parenthesis is not closed")
        return "".join(parts)

    def _read_repeat(self, char: str) -> str | None:
        """Returns the repetition at this position, including a lazy one, or None if there is none."""
        if char in "*+?":
            operator = char
        elif char == "{" and (match := _REPEAT.match(self.text, self.position)):
            low, _, high = match.groups()
            counts = [int(low), int(high)] if high else [int(low)]
            if max(counts) > MAX_REPEATS or counts != sorted(counts):
                raise _Invalid("the count of a repetition is too large or not a number")
            self.repeats *= max(1, *counts)
            if self.repeats > MAX_REPEATS:
                raise _Unjudged("a repetition of a repetition")
            operator = match[0]
        else:
            return None
        self.position += len(operator)
        if self.text[self.position : self.position + 1] == "?":
            self.position += 1
            operator += "?"
        return operator

    def _read_group(self) -> str:
        if self.text[self.position : self.position + 1] != "?":
            return "("
        if self.text[self.position : self.position + 2] == "?:":
            self.position += 2
            return "(?:"
        raise _Unjudged("a group with flags or a name")

    def _read_escape(self) -> str:
        if self.position >= len(self.text):
            raise _Invalid("a backslash at the end")
        char = self.text[self.position]
        self.position += 1
        if char in _CLASS_ESCAPES:
            return f"[{_CLASS_ESCAPES[char]}]"
        if char.lower() in _CLASS_ESCAPES:
            return f"[^{_CLASS_ESCAPES[char.lower()]}]"
        if char in "bBA":
            return "\\" + char
        if char == "z":
            return r"\Z"
        if not char.isalnum() and char != "_":
            return re.escape(char)
        if char in "89" or char in "eghijklmyuiLNRXZ":
            raise _Invalid(f"the escape \\{char}")
        raise _Unjudged(f"the escape \\{char}")

    def _read_class(self) -> str:
        """Returns a character class whose opening bracket has been read already."""
        start = self.position
        end = start + (self.text[start : start + 1] == "^")
        end += self.text[end : end + 1] == "]"
        while end < len(self.text) and self.text[end] != "]":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise _Invalid("a class is not closed")
        body = self.text[start:end]
        if any(operator in body for operator in _OPERATORS) or "\\" in body:
            raise _Unjudged("an escape or an operator in a class")
        for low, high in re.findall(r"(.)-(.)", body.removeprefix("^"), re.DOTALL):
            if low > high:
                raise _Invalid("a range that ends before it begins")
        if re.search(r".-.-", body):
            raise _Unjudged("two ranges share one character")
        self.position = end + 1
        inside = body.removeprefix("^")
        closed = inside.replace("]", r"\]")
        return f"[^{closed}]" if inside != body else f"[{closed}]"
