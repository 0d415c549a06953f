"""A page has the first sentence of a text, and of advice what there is to do."""

import pytest

from docs.pages.sentences import first_clause, first_sentence, summarize_advice


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One thing. Another thing.", "One thing."),
        ("A version such as 1.33 counts. `x` does not.", "A version such as 1.33 counts."),
        ("See docs/how-to/see-it.md for more. Then go on.", "See docs/how-to/see-it.md for more."),
        ("without an end", "without an end"),
        ("over two\nlines. Rest.", "over two lines."),
    ],
)
def test_the_first_sentence_ends_where_another_begins(text: str, first: str) -> None:
    assert first_sentence(text) == first


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("One thing: in detail. Another.", "One thing."),
        ("One thing; and another.", "One thing."),
        ("It has `mode: warn` set.", "It has `mode: warn` set."),
        ("At 12:30 nothing ends.", "At 12:30 nothing ends."),
    ],
)
def test_the_first_clause_ends_at_a_colon_that_is_no_code(text: str, clause: str) -> None:
    assert first_clause(text) == clause


@pytest.mark.parametrize(
    ("todo", "summary"),
    [
        ("Wait. It takes a minute.", "Wait."),
        ("Nothing.", ""),
        ("Nothing to do. No setting of the pool changes this.", ""),
        ("Nothing to do: the compactor removes it.", "The compactor removes it."),
        ("Nothing to do. If it happens often, raise the limit.", "If it happens often, raise the limit."),
    ],
)
def test_advice_says_what_to_do_or_what_happens_by_itself(todo: str, summary: str) -> None:
    assert summarize_advice(todo) == summary
