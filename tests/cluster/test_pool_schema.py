"""The schema of a pool's settings refuses what the reader refuses, and nothing else."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cluster.test_pool_config import WHOLE, read
from trimtab.cluster.documents.declared_fields import DocumentSection
from trimtab.cluster.documents.document_schema import schema_of
from trimtab.cluster.pool import PRESETS
from trimtab.cluster.pool_config import pool_settings

SCHEMA = {**schema_of(pool_settings()), "type": "object"}
CHECK = jsonschema.Draft7Validator(SCHEMA)


def paths(section: DocumentSection, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of each key that is declared, and one that is not in each section."""
    for key in (*section.keys, "nonsense"):
        yield (*before, key)
        if key in section.sections:
            yield from paths(section.sections[key], (*before, key))


FIELDS = [*paths(pool_settings()), ("underUsed", "cpu"), ("underUsed", "example.com/gpu")]
VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    100,
    101,
    10**9 + 1,
    1.5,
    1e-9,
    "",
    "0",
    "10m",
    "1h30m",
    " 90s ",
    "soon",
    "70%",
    "101%",
    "act",
    "rehearse",
    "all",
    "cost",
    "zone",
    *PRESETS,
    [],
    ["example.com/keep"],
    [""],
    {},
    {"labels": {}},
    {"team": "web"},
    {"team": 1},
    {"big": 0.2},
    {"big": 0},
    {"big": 100_000},
    [{}],
    [{"from": "22:00", "to": "5:30"}],
    [{"from": "24:00", "to": "05:00"}],
    [{"from": "1:00", "to": "2:00", "days": ["mon"]}],
    [{"from": "1:00", "to": "2:00", "days": []}],
    [{"from": "1:00", "to": "2:00", "day": "mon"}],
]


def placed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return value


def test_the_schema_is_one_and_knows_every_key_of_the_reader() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    for path in paths(pool_settings()):
        part: Any = SCHEMA
        for key in path[:-1]:
            part = part["properties"][key]
            part = part["anyOf"][1] if "anyOf" in part else part
        assert (path[-1] in part["properties"]) is (path[-1] != "nonsense")


def test_what_says_everything_passes() -> None:
    assert list(CHECK.iter_errors(yaml.safe_load(WHOLE))) == []


@pytest.mark.parametrize("field", FIELDS, ids=".".join)
def test_schema_and_reader_refuse_the_same(field: tuple[str, ...]) -> None:
    documents = [placed(field, value) for value in VALUES]
    passed = [document for document in documents if CHECK.is_valid(document)]
    assert passed == [document for document in documents if not read(yaml.safe_dump(document)).mistakes]


def test_mode_and_dry_run_are_not_said_both() -> None:
    assert not CHECK.is_valid({"mode": "act", "dryRun": False})
