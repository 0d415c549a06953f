import gzip

import pytest

from trimtab.cluster.yaml_documents import read_documents


def values(text: str | bytes):
    reading = read_documents("f.yaml", text if isinstance(text, bytes) else text.encode())
    assert reading.mistakes == ()
    return [document.value for document in reading.documents]


def told(text: str | bytes):
    reading = read_documents("f.yaml", text if isinstance(text, bytes) else text.encode())
    return [(m.line, m.expected, m.got) for m in reading.mistakes]


def test_several_documents_and_empty_ones():
    assert values("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]


def test_the_items_of_a_list_are_documents():
    assert values("kind: List\nitems: [{kind: A}, {kind: B}]\n") == [{"kind": "A"}, {"kind": "B"}]
    assert values('{"kind": "PodList", "items": [{"kind": "Pod"}]}') == [{"kind": "Pod"}]


def test_gzip_is_unpacked():
    assert values(gzip.compress(b"a: 1\n")) == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("true", True),
        ("null", None),
        ("~", None),
        ("1", 1),
        ("-7", -7),
        ("0x10", 16),
        ("010", 8),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", "1e3"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("'yes'", "yes"),
        ("250m", "250m"),
        ("0o17", "0o17"),
        ("08", "08"),
        ("y", "y"),
        (".5", 0.5),
        ("0b11", 3),
    ],
)
def test_values_are_read_as_kubernetes_reads_yaml(text, value):
    assert values(f"a: {text}\n") == [{"a": value}]


def test_keys_are_text():
    assert values("yes: 1\n2: b\n") == [{"yes": 1, "2": "b"}]


def test_anchors_and_merges_are_followed():
    assert values("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n")[0]["d"] == {"b": 1, "c": 3}


def test_a_bomb_is_refused_before_it_expands():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert [expected for _, expected, _ in told("\n".join(lines))] == [
        "a document whose aliases do not multiply its size"
    ]


def test_an_alias_to_itself_is_refused():
    assert [expected for _, expected, _ in told("a: &a [*a]\n")] == [
        "a document whose aliases do not multiply its size"
    ]


def test_a_tab_is_told_with_its_line():
    assert told("a:\n  b: 1\n\tc: 2\n") == [(3, "spaces for indentation", "a tab")]


@pytest.mark.parametrize(
    "text",
    ["a: 1\nname: {{ .Release.Name }}\n", "a: 1\n{{- if .Values.enabled }}\nb: 2\n{{- end }}\n"],
    ids=["a value", "a block"],
)
def test_a_template_is_told_as_one_mistake(text):
    assert told(text) == [(2, "YAML", "a template ({{ … }})")]


def test_braces_in_quotes_are_no_template():
    assert values('text: "{{ $labels.pod }} is down"\n') == [{"text": "{{ $labels.pod }} is down"}]
    assert told('text: "{{ $labels.pod }} is down"\nmore: 1\noops: [\n') != [(1, "YAML", "a template ({{ … }})")]


def test_a_key_twice_is_told_where_it_is_the_second_time():
    assert told("a: 1\nb: 2\na: 3\n") == [(3, "the key 'a' once", "the same key twice")]


@pytest.mark.parametrize("text", ["a: [1, 2", "a: {b: c\n", 'a: "x', '{"a": 1', "a: b: c\n", "\x00", "%bad\n"])
def test_what_is_cut_short_or_no_yaml_is_one_mistake_each(text):
    assert len(told(text)) == 1


@pytest.mark.parametrize(
    "text", ["[" * 5000, "{a: " * 5000, "\n".join(" " * n + "a:" for n in range(300)), "- " * 500 + "a"]
)
def test_nesting_without_end_is_refused(text):
    ((_, expected, _),) = told(text)
    assert expected.startswith(("at most 100", "YAML"))


def test_a_damaged_gzip_is_told():
    assert [expected for _, expected, _ in told(gzip.compress(b"a: 1\n")[:12])] == ["a complete gzip file"]


def test_what_is_not_utf8_is_told():
    assert [expected for _, expected, _ in told(b"a: \xff\xfe\n")] == ["UTF-8 text"]


@pytest.mark.parametrize("text", ["", "\n", "---\n", "# only a comment\n", "[]", "{}"])
def test_nothing_is_nothing(text):
    assert values(text) == []


def test_a_value_of_a_tag_it_cannot_have_is_told():
    assert [line for line, _, _ in told("a: !!int x\n")] == [1]


def test_a_value_knows_its_line():
    (document,) = read_documents("f", b"a:\n  b:\n  - c: 1\n  - d: 2\n").documents
    assert document.position_of(("a", "b", 1, "d")) == (4, 5)


def test_a_list_within_a_list_is_its_items_with_their_own_places():
    text = b"""\
kind: List
items:
- kind: List
  items:
  - kind: PodList
    items:
    - metadata: {name: web, namespace: shop}
- kind: Node
"""
    documents = read_documents("f", text).documents
    assert [(one.kind, one.value["kind"], one.within, one.position_of(())) for one in documents] == [
        ("Pod", "Pod", ("items", 0, "items", 0, "items", 0), (7, 7)),
        ("Node", "Node", ("items", 1), (8, 3)),
    ]
