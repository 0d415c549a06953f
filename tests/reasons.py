"""What tests say of reasons and of printed text: the code and the facts, and not the words.

The words of a reason are pinned once: those of its code on docs/reference/reasons.md, those of the verbs in
tests/golden. A test that compares a sentence fails whenever somebody writes better; a test that names the code, the
names and the numbers fails when the product decides otherwise.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

NEAR = 200
"""How many characters may stand between two facts of one sentence."""


def has_facts(text: str | Iterable[str], *facts: object) -> bool:
    """Whether the text, or one of the texts, has all these names and numbers, in this order and near each other."""
    assert facts, "any text has no facts"
    pattern = re.compile(f".{{0,{NEAR}}}?".join(map(_whole_word, facts)))
    texts = [text] if isinstance(text, str) else text
    return any(pattern.search(" ".join(each.split())) for each in texts)


def assert_reason(result: Any, code: str, **facts: object) -> None:
    """Asserts that one of the reasons of the result has the code, and that its sentence names the facts, in this order.

    `result` is a reason, a text of JSON's `reasons`, a finding of a rule of `lint`, what has a `reason`
    or `reasons`, or a list of those.
    """
    reasons = [(name, text) for name, text in _reasons(result) if name == code]
    assert reasons, f"no reason is {code}: {list(_reasons(result))}"
    assert not facts or has_facts([text for _, text in reasons], *facts.values()), (
        f"the reasons lack a fact of {facts}: {reasons}"
    )


def _whole_word(fact: object) -> str:
    """A pattern of the fact that does not begin or end within a longer name or number."""
    text = " ".join(str(fact).split())
    begin = r"(?<![\w])(?<!\d\.)" if text[0].isalnum() else ""
    return begin + re.escape(text) + (r"(?!\w)(?!\.\d)" if text[-1].isalnum() else "")


def _reasons(result: Any) -> Iterator[tuple[str, str]]:
    """(code, sentence) of each reason in the result."""
    if isinstance(result, dict):
        if "code" in result:
            yield result["code"], result.get("text", result.get("sentence", ""))
        for key in ("reason", "reasons"):
            yield from _reasons(result.get(key, ()))
    elif isinstance(result, Iterable) and not isinstance(result, str):
        for each in result:
            yield from _reasons(each)
    elif hasattr(result, "sentence"):
        yield result.rule if hasattr(result, "rule") else result.code.name, result.sentence
    else:
        for name in ("reason", "reasons"):
            yield from _reasons(getattr(result, name, ()))
