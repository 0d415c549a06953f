"""Are these files policies, and if not, what is wrong with them?

Files → `Policies`, or every mistake of every file at once, each with file, document, line, field, what was expected,
what came and what to do. After this there are no dicts from YAML.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from trimtab.cluster.config_error import MAX_MISTAKES, ConfigError, first_mistakes, nearest, shown
from trimtab.cluster.snapshot import without_nulls
from trimtab.cluster.yaml_documents import Document, read
from trimtab.cluster.yaml_parser import Path
from trimtab.policy.podpolicy import API_VERSION, KIND, Actions, PodPolicy, Policies, PolicyMetadata, Spec
from trimtab.policy.required_action_rules import chosen_place_mistakes, requirement_mistakes
from trimtab.policy.schema import fields_at

_SPEC = TypeAdapter(Spec)
_METADATA = TypeAdapter(PolicyMetadata)
_TOP = ("apiVersion", "kind", "metadata", "spec", "status")


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The policies that are sound, and all that is wrong. Whoever starts with mistakes refuses to start."""

    policies: Policies
    mistakes: tuple[ConfigError, ...] = ()
    passed_over: int = 0
    """Objects of other groups that stood among the files: examples, a kustomization."""


def load_policies(files: Iterable[tuple[str, bytes]]) -> LoadResult:
    """Every PodPolicy of (name, content) pairs. Objects that are plainly somebody else's are passed over and counted;
    files without a single policy are a mistake."""
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    names: list[str] = []
    for name, content in files:
        reading = read(name, content)
        names.append(name)
        documents += reading.documents
        mistakes += reading.mistakes
    ours = [document for document in documents if not _somebody_elses(document.value)]
    if names and not ours and not mistakes:
        mistakes.append(ConfigError(file=", ".join(names[:3]), expected=f"at least one {KIND}", got="none"))
    return replace(_merged(ours, mistakes), passed_over=len(documents) - len(ours))


def _somebody_elses(value: Any) -> bool:
    """An API object of another group and kind. What only nearly is a policy is ours, and a mistake."""
    kind, version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(version, str):
        return False
    return kind.lower() != KIND.lower() and version.split("/")[0] != API_VERSION.split("/")[0]


def _merged(documents: Sequence[Document], mistakes: list[ConfigError]) -> LoadResult:
    policies: list[PodPolicy] = []
    first: dict[str, Document] = {}
    for document in documents:
        policy, found = load_document(document)
        mistakes += found
        name = _name(document)
        if name is None:
            continue
        twin = first.setdefault(name, document)
        if twin is not document:
            mistakes.append(_twice(document, twin, name))
        elif policy is not None:
            policies.append(policy)
    return LoadResult(Policies.of(*policies), tuple(sorted(mistakes, key=_by_place)))


def _by_place(mistake: ConfigError) -> tuple[str, int, int]:
    return (mistake.file, mistake.line or 0, mistake.column or 0)


def _name(document: Document) -> str | None:
    metadata = document.value.get("metadata") if isinstance(document.value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def _twice(document: Document, twin: Document, name: str) -> ConfigError:
    line, _ = twin.mark(("metadata", "name"))
    place = f"{twin.file}:{line}" if line else twin.file
    return document.mistake(("metadata", "name"), "a name of its own", repr(name), f"{place} has a policy of that name")


def load_document(document: Document) -> tuple[PodPolicy | None, list[ConfigError]]:
    """One document: a policy, or what is wrong with it."""
    if not isinstance(document.value, dict):
        return None, [document.mistake((), f"a {KIND}", shown(document.value))]
    wrong_kind = _wrong_kind(document)
    if wrong_kind:
        return None, wrong_kind
    value = without_nulls(document.value)
    unknown = islice((key for key in value if key not in _TOP), MAX_MISTAKES + 1)
    mistakes = [_unknown(document, (key,), _TOP) for key in unknown]
    metadata = value.get("metadata")
    name = {"name": metadata["name"]} if isinstance(metadata, dict) and "name" in metadata else metadata or {}
    mistakes += _check(document, _METADATA, ("metadata",), name)[1]
    if "spec" not in value:
        return None, first_mistakes([*mistakes, document.mistake(("spec",), "a spec with actions", "nothing")])
    spec, found = _check(document, _SPEC, ("spec",), value["spec"])
    mistakes += found
    mistakes += islice(_unquoted(document, document.node, ()), MAX_MISTAKES + 1)
    if spec is not None and spec.actions == Actions():
        mistakes.append(document.mistake(("spec", "actions"), f"at least one of {_action_names()}", "none"))
    if spec is not None:
        mistakes += requirement_mistakes(document, spec)
        mistakes += chosen_place_mistakes(document, spec)
    if mistakes or spec is None:
        return None, first_mistakes(mistakes)
    line, _ = document.mark(("metadata", "name"))
    return PodPolicy(name=value["metadata"]["name"], spec=spec, file=document.file, line=line), []


def _wrong_kind(document: Document) -> list[ConfigError]:
    found = []
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        got = document.value.get(key)
        if got != wanted:
            todo = f"is this a {KIND}?" if key == "kind" and got is not None else ""
            found.append(document.mistake((key,), repr(wanted), shown(got), todo))
    return found


def _unknown(document: Document, path: Path, known: Sequence[str]) -> ConfigError:
    name = str(path[-1])
    todo = nearest(name, known) or "remove it"
    return document.mistake(path, f"one of {', '.join(known)}", f"the unknown field {name!r}", todo)


def _unquoted(document: Document, node: Any, path: Path) -> Iterator[ConfigError]:
    """What is text here and a boolean to `kubectl`, which refuses it then: a bare y or n."""
    if isinstance(node, yaml.ScalarNode):
        if not node.style and node.value in _BOOLEANS and path:
            got = f"a bare {node.value}, which kubectl reads as {str(node.value in 'yY').lower()}"
            yield document.mistake(path, "text in quotes", got, f'write "{node.value}"')
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _unquoted(document, value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _unquoted(document, value, (*path, index))


_BOOLEANS = ("y", "Y", "n", "N")


def _check(document: Document, adapter: TypeAdapter[Any], at: Path, value: Any) -> tuple[Any, list[ConfigError]]:
    try:
        return adapter.validate_python(value), []
    except ValidationError as error:
        errors = error.errors(include_url=False)[: MAX_MISTAKES + 1]
        return None, [_mistake(document, at, found) for found in errors]


def _mistake(document: Document, at: Path, error: Any) -> ConfigError:
    path: Path = (*at, *(step for step in error["loc"] if step != "[key]"))
    got = shown(error["input"])
    match error["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            return _unknown(document, path, fields_at(path))
        case "missing" | "missing_keyword_only_argument":
            return document.mistake(path, "a value", "nothing", "it has no default")
        case "literal_error":
            return _choice(document, path, error["ctx"]["expected"], error["input"])
        case "value_error" | "assertion_error":
            expected = str(error["ctx"]["error"])
            return document.mistake(path, expected, got if not isinstance(error["input"], dict) else "")
    return document.mistake(path, _EXPECTED.get(error["type"], _sentence(error["msg"])), got)


_EXPECTED = {
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "string_type": "text (quote it)",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "too_short": "at least one entry",
    "string_pattern_mismatch": "a name of lower case letters, digits, - and .",
}


def _choice(document: Document, path: Path, expected: str, got: object) -> ConfigError:
    known = [part.strip("'") for part in expected.replace(" or ", ", ").split(", ")]
    return document.mistake(path, f"one of {', '.join(known)}", shown(got), nearest(str(got), known))


def _sentence(message: str) -> str:
    text = message.removeprefix("Input should be ")
    return text[:1].lower() + text[1:]


def _action_names() -> str:
    return ", ".join(fields_at(("spec", "actions", "")))
