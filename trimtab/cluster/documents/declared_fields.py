"""The declaration of a field of a document, and the declared fields of a class as a tree.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Pool:
        drains: Annotated[int, DocumentField("pace.drains", whole_number(1))] = 1
        \"\"\"The words of the reference page.\"\"\"

The declaration is the only place that names the key of a field. The reader, its messages, the JSON Schema and the
reference page follow from it, in the order of the declarations. A field of a class without a declaration is not read.
The module of the class must not postpone its annotations (`from __future__ import annotations`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, get_args

from trimtab.cluster.documents.value_types import ValueType

ANY_KEY = "*"
"""The last step of the path of a field that takes every key which no other field has."""


@dataclass(frozen=True, slots=True)
class KeyRule:
    """Which keys a field with the path `SECTION.*` takes."""

    names: tuple[str, ...]
    mark: str
    """A key that is none of `names` is taken if it contains this text."""
    placeholder: str
    """How the reference page writes such a key."""
    expected: str
    """What a message says that was expected in place of another key."""
    expected_section: str
    """What a message says that was expected in place of a value that is no mapping."""

    def has_key(self, key: str) -> bool:
        """Returns whether the field takes the key."""
        return key in self.names or self.mark in key


@dataclass(frozen=True, slots=True, eq=False)
class DocumentField:
    """Where a value stands in a document, and what it takes."""

    path: str
    """The keys from the top of the document, with dots between them."""
    type: ValueType
    entry: str = ""
    """If the field of the class is a mapping of which this is one entry: its key there."""
    keys: KeyRule | None = None
    """For a path that ends in `*`."""
    required: str = ""
    """What a message says that was expected if the field's section lacks the field. Empty: the field is optional."""
    instead_of: str = ""
    """The key of the same section that sets the same field of the class; a document has one of the two."""
    default: str | None = None
    """How the reference page writes the default, if it is not that of the class."""
    words: str = ""
    """What the reference page says, if no docstring of a class does."""
    shares_row: bool = False
    """Whether the reference page has the field in the row of the field before it."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The keys from the top of the document."""
        return tuple(self.path.split("."))

    @property
    def key(self) -> str:
        """The key in the field's section."""
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field of a document, and where its value goes."""

    document: DocumentField
    target: tuple[str, ...]
    """The names of the fields of classes, from the outermost class, and for an entry of a mapping its key. For a value
    that belongs to no class, its key in the document."""


@dataclass(slots=True)
class DocumentSection:
    """A mapping in a document: its fields and the sections in it, by key."""

    fields: dict[str, DeclaredField] = field(default_factory=dict)
    sections: dict[str, "DocumentSection"] = field(default_factory=dict)
    others: DeclaredField | None = None
    """The field that takes all other keys."""
    keys: list[str] = field(default_factory=list)
    """The keys of the section, in the order in which they are declared."""

    def add_field(self, declared: DeclaredField, steps: tuple[str, ...]) -> None:
        """Adds a field that stands at these steps from this section."""
        key, *rest = steps
        if key == ANY_KEY:
            self.others = declared
            return
        if key not in self.keys:
            self.keys.append(key)
        if rest:
            self.sections.setdefault(key, DocumentSection()).add_field(declared, tuple(rest))
        else:
            assert key not in self.fields, f"{declared.document.path} is declared twice"
            self.fields[key] = declared


def iterate_fields(cls: Any, target: tuple[str, ...] = ()) -> Iterator[DeclaredField]:
    """Yields the declared fields of a dataclass, and of the dataclasses of its fields, in the order of the class."""
    for attribute in fields(cls):
        place = (*target, attribute.name)
        # The type itself, the declarations of `Annotated[…]`, the types of a union.
        for part in (attribute.type, *get_args(attribute.type)):
            if isinstance(part, DocumentField):
                yield DeclaredField(part, (*place, part.entry) if part.entry else place)
            elif isinstance(part, type) and is_dataclass(part):
                yield from iterate_fields(part, place)


def field_of(cls: Any, *target: str) -> DocumentField:
    """Returns the declaration of a field of a dataclass, or of a field of the dataclass that the field holds. Of
    several, the first that is not written instead of another."""
    return next(one.document for one in iterate_fields(cls) if one.target == target and not one.document.instead_of)


@cache
def section_of(cls: Any, *first: DocumentField) -> DocumentSection:
    """Returns the tree of the declared fields of a dataclass, after these fields of the document that belong to no
    class."""
    top = DocumentSection()
    for declared in (*(DeclaredField(one, (one.key,)) for one in first), *iterate_fields(cls)):
        top.add_field(declared, declared.document.steps)
    return top
