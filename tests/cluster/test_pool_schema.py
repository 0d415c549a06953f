"""The schema of a pool's settings refuses what the reader refuses, and nothing else."""

from typing import Any

import jsonschema
import pytest
import yaml

from tests.cluster.test_pool_config import WHOLE, read
from trimtab.cluster.pool import PRESETS
from trimtab.cluster.pool_config import EXTRA_KEYS, FIELDS_BY_SECTION, TOP_KEYS
from trimtab.cluster.pool_schema import pool_settings_schema

CHECK = jsonschema.Draft7Validator(pool_settings_schema())
FIELDS = [
    *[(section, key) for section, keys in FIELDS_BY_SECTION.items() for key in (*keys, *EXTRA_KEYS.get(section, ()))],
    *[("headroom", key) for key in ("percent", "nodes", "largestPod")],
    *[("underUsed", key) for key in ("cpu", "example.com/gpu", "count", "for", "gpu")],
    ("nodes", "labels"),
    ("", "nodes"),
    ("", "preset"),
    ("", "underUsed"),
    ("", "keep"),
    ("", "nonsense"),
]
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


def placed(section: str, key: str, value: Any) -> dict[str, Any]:
    if section == "headroom":
        return {"keep": {section: {key: value}}}
    return {section: {key: value}} if section else {key: value}


def test_the_schema_is_one_and_knows_every_key_of_the_reader() -> None:
    jsonschema.Draft7Validator.check_schema(pool_settings_schema())
    inner = pool_settings_schema()["properties"]
    assert inner.keys() == set(TOP_KEYS)
    for section, keys in FIELDS_BY_SECTION.items():
        if section:
            assert inner[section]["properties"].keys() == {*keys, *EXTRA_KEYS.get(section, ())}


def test_what_says_everything_passes() -> None:
    assert list(CHECK.iter_errors(yaml.safe_load(WHOLE))) == []


@pytest.mark.parametrize("field", FIELDS, ids=".".join)
def test_schema_and_reader_refuse_the_same(field: tuple[str, str]) -> None:
    documents = [placed(*field, value) for value in VALUES]
    passed = [document for document in documents if CHECK.is_valid(document)]
    assert passed == [document for document in documents if not read(yaml.safe_dump(document)).mistakes]


def test_mode_and_dry_run_are_not_said_both() -> None:
    assert not CHECK.is_valid({"mode": "act", "dryRun": False})
