"""A hole becomes template text where it stands."""

import yaml

from docs.chart.holes import block, each_variable, maybe, number, template, text


def test_a_text_is_quoted_and_a_number_is_not() -> None:
    assert (
        template({"a": text(".Values.a"), "b": number(".Values.b")})
        == "a: {{ .Values.a | quote }}\nb: {{ .Values.b }}\n"
    )


def test_a_part_of_a_text_is_not_quoted_by_itself() -> None:
    assert template({"a": f"{text('.Release.Namespace')}/one"}) == "a: {{ .Release.Namespace }}/one\n"


def test_an_element_of_a_list_is_quoted_too() -> None:
    assert template({"a": ["x", text(".Values.a")]}) == "a:\n- x\n- {{ .Values.a | quote }}\n"


def test_a_block_is_written_two_columns_further_in() -> None:
    assert "  b: {{- toYaml .Values.b | nindent 4 }}\n" in template({"a": {"b": block(".Values.b")}})


def test_what_may_be_empty_takes_its_key_along() -> None:
    expected = "{{- with .Values.a }}\na: {{- toYaml . | nindent 2 }}\n{{- end }}\n"
    assert template({"a": maybe(".Values.a")}) == expected


def test_variables_are_elements_of_a_list() -> None:
    actual_template = template({"env": [{"name": "A", "value": "1"}, each_variable(".Values.s")]})
    assert "- name: {{ $name }}\n  value: {{ $value | quote }}\n" in actual_template


def test_what_has_no_hole_is_the_same_again() -> None:
    plain = {"a": ["1", 1, True, None, "x: y", "{}"], "b": {"c": "'"}}
    assert yaml.safe_load(template(plain)) == plain
