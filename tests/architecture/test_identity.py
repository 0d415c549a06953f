"""Is an owner known by its group, kind, namespace and name everywhere? `OwnerKey` is the only key of an owner, and a
`GroupKind` is made where a group is at hand."""

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from tests.architecture.source_words import source_files

READ_AS_KEYS = {"get", "pop", "setdefault", "add"}
NO_OWNERS = {
    "trimtab/diagnosis/observed.py": "manifests that Trimtab renders",
    "trimtab/diagnosis/cluster_reader.py": "manifests that Trimtab renders",
    "trimtab/diagnosis/check_webhook.py": "webhook configurations, which Trimtab lists by their path",
    "trimtab/cli/idle/report.py": "names that `name_of` made, whose kind has its group",
}
"""File → why its keys with a kind and a name are not those of owners."""
STORED = {
    "trimtab/cluster/kinds.py",
    "trimtab/cluster/owner.py",
    "trimtab/histogram/batch_history.py",
    "trimtab/compaction/drain/annotation.py",
    "trimtab/usage/series.py",
    "trimtab/cli/recommend/export.py",
    "trimtab/diagnosis/gone_pod.py",
    "trimtab/idle/object_mentions.py",
    "trimtab/idle/sleep_schedules.py",
    "trimtab/cli/idle/command.py",
    "trimtab/cli/idle/report.py",
}
"""Files that make a `GroupKind` from a text: one that Trimtab has stored, or one that was a `GroupKind` before."""


def last_word(part: ast.expr) -> str:
    """The name that an expression ends in, or the key that it reads: `kind` of `owner.kind` and of `x.get("kind")`."""
    match part:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call() | ast.Subscript():
            words = [n.value for n in ast.walk(part) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            return next((word for word in words if word in ("kind", "name")), "")
    return ""


def is_identity(part: ast.expr) -> bool:
    """Whether a tuple has a kind and a name, so that it stands for an object and lacks the group."""
    if not isinstance(part, ast.Tuple):
        return False
    words = {last_word(element) for element in part.elts}
    return "kind" in words and bool(words & {"name", "workload", "owner"})


def keys_in(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Every expression that is used as the key of a mapping or as the element of a set."""
    for node in nodes:
        match node:
            case ast.Subscript(slice=key) | ast.DictComp(key=key) | ast.SetComp(elt=key):
                yield key
            case ast.Dict(keys=keys) | ast.Set(elts=keys):
                yield from (key for key in keys if key is not None)
            case ast.Call(func=ast.Attribute(attr=name), args=[key, *_]) if name in READ_AS_KEYS:
                yield key
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()]):
                yield key


def test_a_tuple_with_a_kind_and_a_name_is_no_key() -> None:
    results = [
        f"{file.name}:{key.lineno}"
        for file in source_files()
        if file.name not in NO_OWNERS
        for key in keys_in(file.nodes)
        if is_identity(key)
    ]
    assert results == [], "use OwnerKey, which has the group"


@pytest.mark.parametrize(
    "text",
    [
        "x[ns, o.kind, o.name]",
        "x.get((ns, kind, name))",
        "{(ns, kind, name): 1}",
        "(a.kind, a.name) in x",
        '{(ns, str(t.get("kind")), str(t.get("name"))) for t in ts}',
    ],
)
def test_such_a_key_is_found_in_each_of_its_forms(text: str) -> None:
    assert any(map(is_identity, keys_in(ast.walk(ast.parse(text)))))


def test_no_text_describes_a_key_without_a_group() -> None:
    texts = [file.name for file in source_files() if re.search(r'"""\(\w*namespace, \w*kind', file.text)]
    assert texts == []


def test_a_kind_with_its_group_is_made_where_the_group_is_at_hand() -> None:
    texts = {
        file.name
        for file in source_files()
        for node in file.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "GroupKind"
        and not (isinstance(node.args[0], ast.Constant) and node.args[0].value == "")
    }
    assert texts <= STORED, "use group_kind, which takes the apiVersion"
