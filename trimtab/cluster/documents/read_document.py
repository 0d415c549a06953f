"""Reads the sections of a document by their declared fields. All mistakes are collected."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, get_args

from trimtab.cluster.config_error import MAX_MISTAKES, ConfigError, quote_value, suggest_name
from trimtab.cluster.documents.declared_fields import DeclaredField, DocumentSection, KeyRule
from trimtab.cluster.documents.value_types import InvalidValue, Parse
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_parser import Path

T = TypeVar("T")
K = TypeVar("K", bound=str | int)
Values = dict[tuple[str, ...], Any]
"""Where a value goes (`DeclaredField.target`) → the value. Fields that the document lacks are absent."""


@dataclass(slots=True)
class DocumentReader:
    """Reads one document and collects its mistakes."""

    document: Document
    mistakes: list[ConfigError] = field(default_factory=list)

    def add_mistake(self, error: InvalidValue) -> None:
        """Records a mistake."""
        # One more than are reported: `first_mistakes` then says that there are more.
        if len(self.mistakes) <= MAX_MISTAKES:
            self.mistakes.append(self.document.error_at(error.path, error.expected, error.got, error.todo))

    def read_section(self, section: DocumentSection, value: Any, path: Path = ()) -> Values:
        """Returns the valid values of a section, with those of the sections in it. Records a mistake for every other
        value, and for every unknown key."""
        values: Values = {}
        others = section.others.document.keys if section.others is not None else None
        known_keys = section.keys if others is None else None
        entries = self.read_mapping(value, path, known_keys, others.expected_section if others else "a mapping")
        for key in section.keys:
            self._read_entry(section, key, entries, path, values)
        if section.others is not None and others is not None:
            self._read_others(section.others, others, entries, path, section.keys, values)
        return values

    def _read_entry(
        self, section: DocumentSection, key: str, entries: Mapping[str, Any], path: Path, values: Values
    ) -> None:
        declared, inner, place = section.fields.get(key), section.sections.get(key), (*path, key)
        if key not in entries:
            if declared is not None and declared.document.required:
                self.add_mistake(InvalidValue(place, declared.document.required, "nothing"))
        elif declared is None or (inner is not None and not _is_valid(declared, entries[key], place)):
            assert inner is not None
            values |= self.read_section(inner, entries[key], place)
        else:
            self._read_field(declared, entries[key], place, values)
            self._refuse_both(declared, entries, path)

    def read_mapping(
        self, value: Any, path: Path, keys: Iterable[str] | None, expected: str = "a mapping"
    ) -> Mapping[str, Any]:
        """Returns the mapping at a path, or an empty mapping if it is absent or not a mapping. Records a mistake for
        every key that is none of `keys`; None: any key is valid."""
        # YAML gives null for a key without a value: a section whose entries are all commented out.
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.add_mistake(InvalidValue(path, expected, quote_value(value)))
            return {}
        names = tuple(value if keys is None else keys)
        for key in value:
            # Looking for a similar name costs time for every unknown key, and a hostile document may have thousands.
            if len(self.mistakes) > MAX_MISTAKES:
                break
            if key not in names:
                self.add_mistake(
                    InvalidValue((*path, key), f"one of {', '.join(names)}", quote_value(key), suggest_name(key, names))
                )
        return value

    def read_values(self, entries: Mapping[K, Any], path: Path, parsers: Mapping[K, Parse]) -> dict[K, Any]:
        """Returns the valid values of a mapping, of those keys that have a parser. Records a mistake for every value
        that is not valid."""
        values: dict[K, Any] = {}
        for key, parse in parsers.items():
            if key in entries:
                try:
                    values[key] = parse(entries[key], (*path, key))
                except InvalidValue as error:
                    self.add_mistake(error)
        return values

    def _read_field(self, declared: DeclaredField, value: Any, path: Path, values: Values) -> None:
        *parents, key = path
        for one in self.read_values({key: value}, tuple(parents), {key: declared.document.type.parse}).values():
            values[declared.target] = one

    def _refuse_both(self, declared: DeclaredField, entries: Mapping[str, Any], path: Path) -> None:
        """Records a mistake if the section also has the key that sets the same field: one of them would silently
        win."""
        other = declared.document.instead_of
        if other and other in entries:
            key = declared.document.key
            expected = f"{other} or {key}, not both"
            self.add_mistake(InvalidValue((*path, key), expected, quote_value(entries[key]), f"remove {key}"))

    def _read_others(
        self,
        declared: DeclaredField,
        keys: KeyRule,
        entries: Mapping[str, Any],
        path: Path,
        names: list[str],
        values: Values,
    ) -> None:
        for key in sorted(set(entries) - set(names)):
            if len(self.mistakes) > MAX_MISTAKES:
                break
            if keys.has_key(key):
                entry = DeclaredField(declared.document, (*declared.target, key))
                self._read_field(entry, entries[key], (*path, key), values)
            else:
                todo = suggest_name(key, (*keys.names, *names))
                self.add_mistake(InvalidValue((*path, key), keys.expected, quote_value(key), todo))


def _is_valid(declared: DeclaredField, value: Any, path: Path) -> bool:
    """Returns whether a field takes the value. If not, the value may be the section at the same place."""
    try:
        declared.document.type.parse(value, path)
    except InvalidValue:
        return False
    return True


def make_instance(cls: type[T], values: Values) -> T:
    """Returns an instance of a dataclass with these values. A field without a value has its default."""
    own, inner = _split_values(values)
    types = {attribute.name: attribute for attribute in fields(cls)}  # type: ignore[arg-type]
    for name, parts in inner.items():
        attribute = types[name]
        kinds = [part for part in (attribute.type, *get_args(attribute.type)) if isinstance(part, type)]
        own[name] = make_instance(next(kind for kind in kinds if is_dataclass(kind)), parts)
    return cls(**own)


def replace_values(base: T, values: Values) -> T:
    """Returns an instance of a dataclass, or a mapping, with these values; all others stay as in `base`."""
    own, inner = _split_values(values)
    for name, parts in inner.items():
        own[name] = replace_values(getattr(base, name), parts)
    if is_dataclass(base):
        return replace(base, **own)  # type: ignore[type-var]
    return {**base, **own}  # type: ignore[dict-item,return-value]


def _split_values(values: Values) -> tuple[dict[str, Any], dict[str, Values]]:
    """Returns the values of a class's own fields, and those of the dataclasses or mappings in its fields."""
    inner: dict[str, Values] = {}
    for (name, *rest), value in values.items():
        if rest:
            inner.setdefault(name, {})[tuple(rest)] = value
    return {target[0]: value for target, value in values.items() if len(target) == 1}, inner
