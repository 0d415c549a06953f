"""Every character that a terminal obeys, and every character that it does not show, is replaced."""

import json
import sys
import unicodedata

import pytest
import yaml

from trimtab.cluster.control_characters import (
    REPLACEMENT,
    escape_in_json,
    has_control_characters,
    on_one_line,
    quote_for_yaml,
    replace_control_characters,
)

VISIBLE_FORMAT = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Characters of category Cf with a form of their own: signs before numbers in Arabic, Syriac and Kaithi."""


def test_every_character_of_control_format_and_separation_is_replaced() -> None:
    hidden = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp") and code not in VISIBLE_FORMAT
    ]
    assert [one for one in hidden if replace_control_characters(one) != REPLACEMENT] == ["\t", "\n"]


@pytest.mark.parametrize("code", [0x61C, 0x200B, 0x200E, 0x2028, 0x2029, 0xFEFF, 0xE0000, 0xE0041, 0xE007F, 0x3164])
def test_a_character_that_is_not_shown_is_replaced(code: int) -> None:
    assert replace_control_characters(f"web{chr(code)}1") == f"web{REPLACEMENT}1"


def test_text_of_other_scripts_and_emoji_stays_as_it_is() -> None:
    words = ("größer", "зелень", "日本語", "عربي", "\u2764\ufe0f", "e\u0301")
    assert [word for word in words if has_control_characters(word)] == []


def test_one_line_has_no_line_end_of_any_kind() -> None:
    assert on_one_line("a\nb\r\nc\td\u2028e\x85f\x0bg") == "a�b��c�d�e�f�g"


def test_json_beyond_the_first_plane_has_the_same_data() -> None:
    document = escape_in_json(json.dumps({"name": "a\U000e0041b\u200bc"}, ensure_ascii=False))
    assert (json.loads(document), has_control_characters(document)) == ({"name": "a\U000e0041b\u200bc"}, False)


@pytest.mark.parametrize(
    "text", ["::stop-commands::z", "  ::error file=x::y", "a\n\t::warning::y", "a ##[error]b", "##vso[task.complete]x"]
)
def test_a_command_of_a_ci_system_is_only_text(text: str) -> None:
    printed = replace_control_characters(text)
    assert (len(printed), printed.count(REPLACEMENT), has_control_characters(printed)) == (len(text), 1, False)


@pytest.mark.parametrize("text", ["::1", "fd00::1", "std::vector::x", "## heading", "a #[x]"])
def test_an_address_and_a_heading_are_no_commands(text: str) -> None:
    assert replace_control_characters(text) == text


@pytest.mark.parametrize("text", ["a\n::error::b", "x ##[group]y", "\U000e0041\u200b\x9b", "größer \x00", "a ::b::"])
def test_a_quoted_scalar_of_yaml_has_the_same_data(text: str) -> None:
    quoted = quote_for_yaml(text)
    assert (yaml.safe_load(quoted), has_control_characters(quoted), "\n" in quoted) == (text, False, False)
