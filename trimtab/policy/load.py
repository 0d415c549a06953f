"""Loads policies from files, or reports every mistake in them.

All mistakes of all files are returned at once, each with file, document, line, field, the expected value, the actual
value and what to do. After the loader, no code handles dicts from YAML.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from trimtab.cluster.api.meta import without_nulls
from trimtab.cluster.config_error import MAX_MISTAKES, ConfigError, first_mistakes, quote_value, suggest_name
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.cluster.yaml_parser import Path
from trimtab.policy.authoring_rules import authoring_mistakes
from trimtab.policy.field_types import Authoring
from trimtab.policy.podpolicy import Actions, PodPolicy, Policies, PolicyMetadata, Spec
from trimtab.policy.policy_kind import API_VERSION, KIND
from trimtab.policy.required_action_rules import chosen_place_mistakes, requirement_mistakes
from trimtab.policy.schema import fields_at
from trimtab.policy.status import WARN, is_braked

_TOP = ("apiVersion", "kind", "metadata", "spec", "status")


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The valid policies, and all mistakes. A process that finds mistakes when it starts refuses to start."""

    policies: Policies
    mistakes: tuple[ConfigError, ...] = ()
    passed_over: int = 0
    """The number of objects of other API groups in the files, such as examples or a kustomization."""


def load_policies(files: Iterable[tuple[str, bytes]], *, is_authoring: bool = False) -> LoadResult:
    """Returns every PodPolicy in the files, which are (name, content) pairs. Objects that clearly belong to another
    program are skipped and counted. Files without a single policy are a mistake. For `is_authoring` see
    `load_document`."""
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    names: list[str] = []
    for name, content in files:
        reading = read_documents(name, content)
        names.append(name)
        documents += reading.documents
        mistakes += reading.mistakes
    ours = [document for document in documents if not _is_other_object(document.value)]
    if names and not ours and not mistakes:
        mistakes.append(ConfigError(file=", ".join(names[:3]), expected=f"at least one {KIND}", got="none"))
    return replace(_merge_documents(ours, mistakes, is_authoring=is_authoring), passed_over=len(documents) - len(ours))


def _is_other_object(value: Any) -> bool:
    """Returns whether the value is an API object of another group and kind. An object that only resembles a policy
    counts as a policy with a mistake."""
    kind, version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(version, str):
        return False
    # A misspelt kind with Trimtab's API group, or a wrong group with the right kind, is meant to be a policy.
    return kind.lower() != KIND.lower() and version.split("/")[0] != API_VERSION.split("/")[0]


def _merge_documents(documents: Sequence[Document], mistakes: list[ConfigError], *, is_authoring: bool) -> LoadResult:
    policies: list[PodPolicy] = []
    first: dict[str, Document] = {}
    for document in documents:
        policy, document_mistakes = load_document(document, is_authoring=is_authoring)
        mistakes += document_mistakes
        name = _policy_name(document)
        if name is None:
            continue
        # Two policies of one name would replace each other in a cluster. An invalid document reserves its name, too.
        twin = first.setdefault(name, document)
        if twin is not document:
            line, _ = twin.position_of(("metadata", "name"))
            place = f"{twin.file}:{line}" if line else twin.file
            mistakes.append(
                document.error_at(
                    ("metadata", "name"),
                    "a name that no other policy has",
                    repr(name),
                    f"the policy in {place} has this name",
                )
            )
        elif policy is not None:
            policies.append(policy)
    return LoadResult(Policies.from_policies(*policies), tuple(sorted(mistakes, key=_position_order)))


def _position_order(mistake: ConfigError) -> tuple[str, int, int]:
    return (mistake.file, mistake.line or 0, mistake.column or 0)


def _policy_name(document: Document) -> str | None:
    metadata = document.value.get("metadata") if isinstance(document.value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def load_document(document: Document, *, is_authoring: bool = False) -> tuple[PodPolicy | None, list[ConfigError]]:
    """Returns the policy of one document, or None, and the mistakes in it.

    `is_authoring`: the policy is being written, so the rules count that a stored policy may break. The mode of an
    object that the harm brake holds is `warn`."""
    if not isinstance(document.value, dict):
        return None, [document.error_at((), f"a {KIND}", quote_value(document.value))]
    wrong_kind = _check_kind(document)
    if wrong_kind:
        return None, wrong_kind
    # An explicit null counts as an absent field.
    value = without_nulls(document.value)
    # A hostile document may have millions of unknown fields: one more than are reported is enough.
    unknown = islice((key for key in value if key not in _TOP), MAX_MISTAKES + 1)
    mistakes = [_unknown_field(document, (key,), _TOP) for key in unknown]
    metadata = value.get("metadata")
    # Only the name is checked: metadata of a live object holds many fields that a policy's author does not write.
    name = {"name": metadata["name"]} if isinstance(metadata, dict) and "name" in metadata else metadata or {}
    mistakes += _validate(document, PolicyMetadata, ("metadata",), name)[1]
    if "spec" not in value:
        return None, first_mistakes([*mistakes, document.error_at(("spec",), "a spec with actions", "nothing")])
    spec, spec_mistakes = _validate(document, Spec, ("spec",), value["spec"], Authoring() if is_authoring else None)
    mistakes += spec_mistakes
    mistakes += islice(_unquoted_booleans(document, document.node, ()), MAX_MISTAKES + 1)
    if spec is not None and spec.actions == Actions():
        mistakes.append(document.error_at(("spec", "actions"), f"at least one of {_action_names()}", "none"))
    if spec is not None:
        mistakes += requirement_mistakes(document, spec)
        mistakes += chosen_place_mistakes(document, spec)
        if is_authoring:
            mistakes += authoring_mistakes(document, spec)
    if mistakes or spec is None:
        return None, first_mistakes(mistakes)
    if is_braked(value):
        spec = replace(spec, mode=WARN)
    line, _ = document.position_of(("metadata", "name"))
    return PodPolicy(name=value["metadata"]["name"], spec=spec, file=document.file, line=line), []


def _check_kind(document: Document) -> list[ConfigError]:
    mistakes = []
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        value = document.value.get(key)
        if value != expected:
            todo = f"is this a {KIND}?" if key == "kind" and value is not None else ""
            mistakes.append(document.error_at((key,), repr(expected), quote_value(value), todo))
    return mistakes


def _unknown_field(document: Document, path: Path, valid_names: Sequence[str]) -> ConfigError:
    name = str(path[-1])
    todo = suggest_name(name, valid_names) or "remove it"
    return document.error_at(path, f"one of {', '.join(valid_names)}", f"the unknown field {name!r}", todo)


def _unquoted_booleans(document: Document, node: Any, path: Path) -> Iterator[ConfigError]:
    """Yields a mistake for each unquoted y or n, which the loader reads as text, but which `kubectl` reads as a boolean
    and then refuses."""
    if isinstance(node, yaml.ScalarNode):
        if not node.style and node.value in _BOOLEANS and path:
            description = f"a bare {node.value}, which kubectl reads as {str(node.value in 'yY').lower()}"
            yield document.error_at(path, "text in quotes", description, f'write "{node.value}"')
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _unquoted_booleans(document, value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _unquoted_booleans(document, value, (*path, index))


_BOOLEANS = ("y", "Y", "n", "N")


@cache
def _reader_of(part: type) -> TypeAdapter[Any]:
    """Returns what reads this part of a policy. Building it takes a tenth of a second, which only those pay who read
    one."""
    return TypeAdapter(part)


def _validate(
    document: Document, part: type, at: Path, value: Any, context: Authoring | None = None
) -> tuple[Any, list[ConfigError]]:
    try:
        return _reader_of(part).validate_python(value, context=context), []
    except ValidationError as error:
        errors = error.errors(include_url=False)[: MAX_MISTAKES + 1]
        return None, [_to_config_error(document, at, item) for item in errors]


def _to_config_error(document: Document, at: Path, error: Any) -> ConfigError:
    # pydantic adds "[key]" where the key of a mapping is invalid; the key itself is in the path already.
    path: Path = (*at, *(step for step in error["loc"] if step != "[key]"))
    value = quote_value(error["input"])
    match error["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            return _unknown_field(document, path, fields_at(path))
        case "missing" | "missing_keyword_only_argument":
            return document.error_at(path, "a value", "nothing", "the field has no default")
        case "literal_error":
            return _invalid_choice(document, path, error["ctx"]["expected"], error["input"])
        case "value_error" | "assertion_error":
            expected = str(error["ctx"]["error"])
            # A check of a whole mapping says what is missing; the mapping itself would only repeat the document.
            return document.error_at(path, expected, value if not isinstance(error["input"], dict) else "")
    text = error["msg"].removeprefix("Input should be ")
    return document.error_at(path, _EXPECTED.get(error["type"], text[:1].lower() + text[1:]), value)


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


def _invalid_choice(document: Document, path: Path, expected: str, value: object) -> ConfigError:
    choices = [part.strip("'") for part in expected.replace(" or ", ", ").split(", ")]
    return document.error_at(
        path, f"one of {', '.join(choices)}", quote_value(value), suggest_name(str(value), choices)
    )


def _action_names() -> str:
    return ", ".join(fields_at(("spec", "actions", "")))
