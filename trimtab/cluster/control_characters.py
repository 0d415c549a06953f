"""Replaces or escapes the characters of a text that a terminal obeys instead of showing them."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROL_CHARACTERS = {
    code: REPLACEMENT for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}  # fmt: skip
_REORDERING = dict.fromkeys((0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069), REPLACEMENT)
"""Characters that make a terminal show the text after them in another order."""
_REPLACED = {**_CONTROL_CHARACTERS, **_REORDERING}
_ESCAPED_IN_JSON = {code: f"\\u{code:04x}" for code in _REPLACED if code >= 0x7F}
"""JSON itself has no such characters, so all of them are in strings. An encoder escapes those below 0x20."""


def replace_control_characters(text: str) -> str:
    """Returns the text with all control characters replaced, except line ends and tabs."""
    return text if text.isascii() and text.isprintable() else text.translate(_REPLACED)


def has_control_characters(text: str) -> bool:
    """Returns whether the text has characters that `replace_control_characters` replaces."""
    return replace_control_characters(text) != text


def escape_in_json(document: str) -> str:
    """Returns the same JSON document; control characters in its strings are escaped, because JSON is data."""
    if document.isascii() and "\x7f" not in document:
        return document
    return document.translate(_ESCAPED_IN_JSON)
