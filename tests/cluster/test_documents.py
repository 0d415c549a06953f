"""What a document's field declares: where it stands, what it takes, and what the reader and the schema make of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import jsonschema
import pytest

from trimtab.cluster.config_error import MAX_MISTAKES
from trimtab.cluster.documents.declared_fields import DocumentField, KeyRule, field_of, section_of
from trimtab.cluster.documents.document_schema import schema_of
from trimtab.cluster.documents.read_document import DocumentReader, Values, make_instance, replace_values
from trimtab.cluster.documents.value_types import DURATION, FLAG, PERCENT, whole_number
from trimtab.cluster.yaml_documents import Document

SHARES = KeyRule(
    names=("cpu",), mark="/", placeholder="<other>", expected="a resource", expected_section="shares of resources"
)


@dataclass(frozen=True, kw_only=True)
class Door:
    width: Annotated[int, DocumentField("door.width", whole_number(1, 9), required="a width")]
    is_open: Annotated[bool, DocumentField("door.open", FLAG)] = False


@dataclass(frozen=True, kw_only=True)
class House:
    rooms: Annotated[int, DocumentField("rooms", whole_number())] = 2
    is_sold: Annotated[bool, DocumentField("free", FLAG, instead_of="sold"), DocumentField("sold", FLAG)] = False
    shares: Annotated[Mapping[str, int], DocumentField("shares.*", PERCENT, keys=SHARES)] = field(default_factory=dict)
    lease: Annotated[int, DocumentField("shares.for", DURATION)] = 60
    paint: Annotated[
        Mapping[str, int],
        DocumentField("paint.frontWall", whole_number(), entry="front"),
        DocumentField("paint.backWall", whole_number(), entry="back"),
    ] = field(default_factory=dict)
    door: Door | None = None
    owner: str = "nobody"


SECTION = section_of(House)


def read(value: Any) -> tuple[Values, list[str]]:
    reader = DocumentReader(Document(file="house.yaml", index=0, value=value))
    values = reader.read_section(SECTION, value)
    return values, [mistake.field for mistake in reader.mistakes]


def test_values_go_where_the_class_declares_them() -> None:
    values, mistakes = read({"rooms": 3, "shares": {"cpu": "7%", "a/b": 1, "for": "2m"}, "door": {"width": 4}})
    assert mistakes == []
    assert make_instance(Door, {("width",): 4}) == Door(width=4)
    del values["shares", "cpu"], values["shares", "a/b"]
    assert make_instance(House, values) == House(rooms=3, lease=120, door=Door(width=4))


def test_what_is_absent_stays_as_it_was() -> None:
    base = House(rooms=5, shares={"cpu": 1, "a/b": 2}, paint={"back": 1})
    values, _ = read({"shares": {"cpu": 9}, "paint": {"frontWall": 3}})
    assert replace_values(base, values) == House(rooms=5, shares={"cpu": 9, "a/b": 2}, paint={"back": 1, "front": 3})


def test_all_mistakes_are_told_with_their_places() -> None:
    value = {"rooms": {}, "free": True, "sold": True, "shares": {"gpu": 1}, "paint": {"side": 1}, "door": {"open": 1}}
    assert read(value)[1] == ["rooms", "free", "shares.gpu", "paint.side", "door.width", "door.open"]


@pytest.mark.parametrize(
    ("value", "mistakes"),
    [
        (None, []),
        ([], [""]),
        ({"door": None}, ["door.width"]),
        ({"paint": None, "shares": None}, []),
        ({"shares": 3}, ["shares"]),
        ({"owner": "me"}, ["owner"]),
    ],
)
def test_a_section_that_is_none_and_a_key_that_nothing_declares(value: Any, mistakes: list[str]) -> None:
    assert read(value)[1] == mistakes


def test_no_more_mistakes_are_looked_for_than_are_reported() -> None:
    assert len(read({f"x{number}": 1 for number in range(1000)})[1]) == MAX_MISTAKES + 1


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ({"rooms": 3, "shares": {"cpu": 1, "a/b": "7%", "for": "1m"}, "door": {"width": 1}}, True),
        ({"paint": None}, True),
        ({"shares": {"gpu": 1}}, False),
        ({"door": {}}, False),
        ({"door": None}, False),
        ({"free": True, "sold": True}, False),
    ],
)
def test_the_schema_takes_what_the_reader_takes(value: Any, is_valid: bool) -> None:
    assert jsonschema.Draft7Validator(schema_of(SECTION)).is_valid(value) is is_valid
    assert (read(value)[1] == []) is is_valid


def test_a_message_names_the_keys_in_the_order_of_their_declarations() -> None:
    assert SECTION.keys == ["rooms", "free", "sold", "shares", "paint", "door"]


def test_a_field_knows_its_path() -> None:
    assert field_of(House, "is_sold").key == "sold"
    assert field_of(House, "door", "width").path == "door.width"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0"), (59, "59s"), (600, "10m"), (7200, "2h"), (5400, "90m")])
def test_a_duration_is_written_as_it_is_read(seconds: int, text: str) -> None:
    assert DURATION.write(seconds) == text
    assert DURATION.parse(text, ()) == seconds
