"""YAML edited in place: nothing but what changed is another line."""

from collections.abc import Callable
from difflib import ndiff
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.yaml_edit import edit_yaml, is_same, value_of

Change = Callable[[Any], None]


def after(text: str, change: Change) -> str:
    def changed(value: Any) -> Any:
        change(value)
        return value

    return edit_yaml(text, changed)


def lines(text: str, change: Change) -> list[str]:
    """What a diff shows."""
    result = ndiff(text.splitlines(keepends=True), after(text, change).splitlines(keepends=True))
    return [line for line in result if line[0] in "+-"]


RESOURCES = """\
# the shop
a:   1      # first
resources:
    limits:
        cpu: 500m   # why
        memory: "1Gi"

    requests: {cpu: 100m, memory: 1Gi}  # small
b:
- x   # an x
- - y
  - z
"""


def test_nothing_changed_is_the_very_text():
    assert after("a:  1 \r\nb: [ 1,2 ]\r\n\r\n", lambda value: None) == "a:  1 \r\nb: [ 1,2 ]\r\n\r\n"


def test_a_value_is_changed_in_its_place():
    assert lines(RESOURCES, lambda v: v["resources"]["limits"].update(cpu="1")) == [
        "-         cpu: 500m   # why\n",
        '+         cpu: "1"   # why\n',
    ]


def test_quotes_are_the_authors():
    assert lines(RESOURCES, lambda v: v["resources"]["limits"].update(memory="2Gi"))[1] == '+         memory: "2Gi"\n'
    assert after("a: 'x'\n", lambda v: v.update(a="it's")) == "a: 'it''s'\n"


def test_a_key_that_goes_takes_its_line_only():
    assert lines(RESOURCES, lambda v: v["resources"]["limits"].pop("cpu")) == ["-         cpu: 500m   # why\n"]


def test_a_mapping_that_goes_takes_its_lines():
    assert [line[2:] for line in lines(RESOURCES, lambda v: v["resources"].pop("limits"))] == [
        "    limits:\n",
        "        cpu: 500m   # why\n",
        '        memory: "1Gi"\n',
    ]


def test_a_key_is_added_below_its_last_sibling():
    assert lines(RESOURCES, lambda v: v["resources"]["limits"].update(x=True)) == ["+         x: true\n"]


def test_flow_stays_flow():
    def change(value: Any) -> None:
        del value["resources"]["requests"]["cpu"]
        value["resources"]["requests"]["x"] = {"z": ["on", "1"]}

    assert lines(RESOURCES, change)[1] == '+     requests: {memory: 1Gi, x: {z: ["on", "1"]}}  # small\n'


def test_items_come_and_go():
    assert lines(RESOURCES, lambda v: v["b"].append({"k": 1, "l": [2]})) == ["+ - k: 1\n", "+   l:\n", "+   - 2\n"]
    assert lines(RESOURCES, lambda v: v["b"].pop(0)) == ["- - x   # an x\n"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("- name: a\n  resources: {}  # none\n  x: 1\n", "- name: a\n  resources:  # none\n    cpu: 1\n  x: 1\n"),
        ("- name: a\n  resources:\n  x: 1\n", "- name: a\n  resources:\n    cpu: 1\n  x: 1\n"),
        ("- name: a\n  resources: null", "- name: a\n  resources:\n    cpu: 1"),
        ("- {name: a, resources: }\n", "- {name: a, resources: {cpu: 1}}\n"),
    ],
)
def test_an_empty_value_is_filled(text: str, whole: str):
    assert after(text, lambda v: v[0].update(resources={"cpu": 1})) == whole


def test_lists_stand_in_from_their_key_as_the_others_do():
    text = "a:\n  - 1\nb:\n  c: 1\n"
    assert after(text, lambda v: v["b"].update(d=[1])) == "a:\n  - 1\nb:\n  c: 1\n  d:\n    - 1\n"


def test_json_stays_json():
    text = '{\n  "a": {\n    "b": 1\n  },\n  "c": [\n    "d"\n  ]\n}\n'

    def change(value: Any) -> None:
        value["a"]["e"] = {"f": "g"}
        value["c"].append("h")

    whole = '{\n  "a": {\n    "b": 1,\n    "e": {"f": "g"}\n  },\n  "c": [\n    "d",\n    "h"\n  ]\n}\n'
    assert after(text, change) == whole


def test_windows_line_ends_stay():
    assert after("a:\r\n  b: 1\r\n", lambda v: v["a"].update(c=2)) == "a:\r\n  b: 1\r\n  c: 2\r\n"


def test_the_end_of_the_file_stays_as_it_is():
    assert after("a:\n  b: 1", lambda v: v["a"].update(c=2)) == "a:\n  b: 1\n  c: 2"
    assert after("a: 1\nb: 2", lambda v: v.pop("b")) == "a: 1"


def test_a_tab_after_a_value_stays():
    assert after("a: x\t\nb: 1\n", lambda v: v.update(b=2)) == "a: x\t\nb: 2\n"


def test_characters_beyond_the_first_plane_count_as_one():
    assert after("a: 🚢 # 🚢\nb: 1 # 🚢\n", lambda v: v.update(b=2)) == "a: 🚢 # 🚢\nb: 2 # 🚢\n"


def test_of_a_key_that_stands_twice_the_last_one_is_changed():
    assert after("a: 1\na: 2\n", lambda v: v.update(a=3)) == "a: 1\na: 3\n"
    assert after("b: 0\na: 1\na: 2\n", lambda v: v.pop("a")) == "b: 0\n"


SHARED = "x: &r\n  cpu: 1\n  memory: 2\ny: *r\nz:\n  <<: *r\n  disk: 3\n"


def test_what_all_share_is_changed_where_it_is_written():
    def change(value: Any) -> None:
        for each in value.values():
            each["cpu"] = 9

    assert lines(SHARED, change) == ["-   cpu: 1\n", "+   cpu: 9\n"]


def test_what_parts_is_written_out_where_it_parts():
    assert lines(SHARED, lambda v: v["y"].update(cpu=9)) == ["- y: *r\n", "+ y:\n", "+   cpu: 9\n", "+   memory: 2\n"]
    assert lines(SHARED, lambda v: v["z"].update(cpu=9)) == ["+   cpu: 9\n"]
    assert lines(SHARED, lambda v: v["z"].pop("cpu")) == ["-   <<: *r\n", "+   memory: 2\n"]


def test_others_keep_what_an_anchor_loses():
    assert value_of(after(SHARED, lambda v: v["x"].pop("cpu"))) == {
        "x": {"memory": 2},
        "y": {"cpu": 1, "memory": 2},
        "z": {"cpu": 1, "memory": 2, "disk": 3},
    }


def test_a_block_of_text_keeps_its_lines():
    text = "a:\n  b: |+\n    one\n\n  c: |\n    two\n\n# end\n"
    assert after(text, lambda v: v["a"].update(d=1)) == text.replace("two\n", "two\n  d: 1\n")
    assert after("a:\n  b: |+\n    one\n\nz: 1\n", lambda v: v["a"].update(d=1)) == (
        "a:\n  b: |+\n    one\n\n  d: 1\nz: 1\n"
    )


@pytest.mark.parametrize(
    ("header", "becomes"), [("|", "|-"), (">", ">-"), ("|2", "|2-"), ("|+", "|-"), ("|-", "|-"), ("| # sh", "|- # sh")]
)
def test_a_block_of_text_at_an_end_without_a_line_break_gets_none_by_what_is_added_after_it(header: str, becomes: str):
    text = "# the job\na:   # first\n  b: 1\n  c: {}\n    x\n    y"

    def change(value: Any) -> None:
        value["a"]["d"] = 1
        value["e"] = 2

    assert after(text.format(header), change) == text.format(becomes) + "\n  d: 1\ne: 2"
    assert after(text.format(header), lambda v: v["a"].update(b=2)) == text.format(header).replace("b: 1", "b: 2")
    assert value_of(after(text.format(header), lambda v: v["a"].update(c="z", d=1))) == {
        "a": {"b": 1, "c": "z", "d": 1}
    }


@pytest.mark.parametrize("text", ["? [a, b]\n: 1\nc: 1\n", "c: 1\n? d\n: 2\n", "--- # why\nc: !!str 1\n", "- - c\n"])
def test_odd_documents_come_out_right_all_the_same(text: str):
    def change(value: Any) -> Any:
        return {**value, "n": "yes"} if isinstance(value, dict) else [*value, "yes"]

    assert is_same(value_of(edit_yaml(text, change)), change(value_of(text)))


_TEXTS = st.sampled_from(["a", "b c", "yes", "1", "1:30", "x: y", "# z", "'q'", "", " s", "é", "-", "100m"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from("abcde"), _VALUES, min_size=1),
    st.sampled_from([None, False, True]),
    st.booleans(),
    st.data(),
)
def test_any_change_of_any_document_is_made(
    value: Any, flow: bool | None, has_windows_lines: bool, data: st.DataObject
):
    shared = {**value, "s": value["a"]} if "a" in value else value
    text = yaml.safe_dump(shared, default_flow_style=flow, sort_keys=False, allow_unicode=True)
    text = text.replace("\n", "\r\n") if has_windows_lines else text
    expected = _mutated(value_of(text), data)
    assert is_same(value_of(edit_yaml(text, lambda _: expected)), expected)


def _mutated(value: Any, data: st.DataObject) -> Any:
    """One place of it other than it was."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 3)):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: _mutated(value[key], data)}
    if isinstance(value, dict):
        gone = data.draw(st.sets(st.sampled_from(sorted(value)))) if value else set()
        return {k: v for k, v in value.items() if k not in gone} | {"new": data.draw(_VALUES)}
    if isinstance(value, list) and value and data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], *value[place + data.draw(st.integers(0, 1)) :], data.draw(_VALUES)]
    return data.draw(_VALUES)


def test_json_may_write_a_character_in_two_escapes():
    def change(value: Any) -> None:
        value["b"] = 2

    text = r'{"a": "\ud83d\uDE00 \\ud83d\\ude00", "b": 1}'
    assert value_of(after(text, change)) == {"a": "\U0001f600 \\ud83d\\ude00", "b": 2}
