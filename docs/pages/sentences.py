"""What a reference page says of a name: the first sentence. `trimtab explain NAME` prints the whole text."""

import re

_FIRST = re.compile(r".+?[.!?](?=\s+[A-Z`]|$)")
_AFTER_CLAUSE = re.compile(r"^((?:`[^`]*`|[^`:;]|[:;](?! ))+)[:;] .*")
_NOTHING = re.compile(r"Nothing(?: to do)?(?:[.]\s*|: )")
_NOT_BY_POOL = "No setting of the pool changes this."


def first_sentence(text: str) -> str:
    """Returns the first sentence of the text, in one line; all of a text that does not end one."""
    line = " ".join(text.split())
    match = _FIRST.match(line)
    return match[0] if match else line


def first_clause(text: str) -> str:
    """Returns the first sentence of the text, without what follows a colon or a semicolon outside of its code."""
    return _AFTER_CLAUSE.sub(r"\1.", first_sentence(text))


def summarize_advice(todo: str) -> str:
    """Returns what there is to do by the advice of a code, or what happens by itself, in one sentence; an empty text if
    it is nothing."""
    line = " ".join(todo.split()).replace(_NOT_BY_POOL, "").strip()
    match = _NOTHING.match(line)
    rest = line[match.end() :] if match else line
    return first_sentence(rest[0].upper() + rest[1:]) if rest else ""
