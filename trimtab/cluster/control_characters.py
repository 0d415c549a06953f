"""Replaces or escapes the characters of a text that a terminal obeys, and those that it does not show."""

import json
import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_RANGES = (
    # Category Cc: control characters. Line ends and tabs belong to texts with several lines.
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    # Category Cf: characters that are not shown, or that make a terminal show the text after them in another order.
    (0xAD, 0xAD),
    (0x61C, 0x61C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    # Categories Zl and Zp: separators of lines and paragraphs.
    (0x2028, 0x2029),
    # Other characters that are not shown: joiners, fillers, tags, and the selectors of variants beyond the first 16.
    (0x34F, 0x34F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x3164, 0x3164),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
)
"""The first and the last character of each range that is replaced: the Default_Ignorable_Code_Point of Unicode
(DerivedCoreProperties.txt) but for U+FE00 to U+FE0F, which choose the style of an emoji, and the control characters."""
_REPLACED = {code: REPLACEMENT for first, last in _RANGES for code in range(first, last + 1)}
_REPLACED_ON_ONE_LINE = {**_REPLACED, **dict.fromkeys((0x09, 0x0A), REPLACEMENT)}


def _escape(code: int) -> str:
    units = chr(code).encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


_ESCAPED_IN_JSON = {code: _escape(code) for code in _REPLACED if code >= 0x7F}
"""JSON itself has no such characters, so all of them are in strings. An encoder escapes those below 0x20."""


_COMMAND = re.compile(r"^([^\S\n]*):(?=:[^\n]*::)|#(?=#(?:vso)?\[)", re.MULTILINE)
"""How a command begins that a CI system obeys if it is in the output of a step: GitHub's `::name::` at the beginning of
a line (actions/runner, ActionCommand.cs), and `##[name]` and Azure Pipelines' `##vso[name]` anywhere in a line."""


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and "::" not in text and "##" not in text


def replace_control_characters(text: str) -> str:
    """Returns the text with all control characters and invisible characters replaced, except line ends and tabs. The
    first character of a CI system's command is replaced too."""
    return text if _is_plain(text) else _COMMAND.sub(_hide_command, text.translate(_REPLACED))


def on_one_line(text: str) -> str:
    """Returns the text of others for a place where a line end would begin a line of Trimtab's own, such as a finding:
    line ends and tabs are replaced as well."""
    return text if _is_plain(text) else _COMMAND.sub(_hide_command, text.translate(_REPLACED_ON_ONE_LINE))


def _hide_command(command: re.Match[str]) -> str:
    return f"{command[1] or ''}{REPLACEMENT}"


def has_control_characters(text: str) -> bool:
    """Returns whether the text has characters that `replace_control_characters` replaces."""
    return replace_control_characters(text) != text


def escape_in_json(document: str) -> str:
    """Returns the same JSON document; control characters in its strings are escaped, because JSON is data."""
    if document.isascii() and "\x7f" not in document and "##" not in document:
        return document
    return _COMMAND_IN_A_LINE.sub(r"\\u0023", document.translate(_ESCAPED_IN_JSON))


_COMMAND_IN_A_LINE = re.compile(r"#(?=#(?:vso)?\[)")


def quote_for_yaml(text: str) -> str:
    """Returns the text as a scalar of YAML in double quotes, on one line, in which control characters are escaped."""
    quoted = json.dumps(text, ensure_ascii=False).translate(_ESCAPED_IN_YAML)
    quoted = "".join(one if one.isprintable() else _escape_in_yaml(ord(one)) for one in quoted)
    return _COMMAND_IN_A_LINE.sub(r"\\u0023", quoted)


def _escape_in_yaml(code: int) -> str:
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


_ESCAPED_IN_YAML = {code: _escape_in_yaml(code) for code in _REPLACED if code >= 0x7F}
"""YAML reads no pairs of surrogates."""
