"""The chart's values: what is written down is what is checked."""

from typing import Any

import jsonschema
import pytest
import yaml

from docs.chart.values import schema, values_yaml
from trimtab.installation.names import PROCESSES

CHECK = jsonschema.Draft7Validator(schema())


def test_the_schema_is_one_and_the_defaults_pass_it() -> None:
    jsonschema.Draft7Validator.check_schema(schema())
    assert list(CHECK.iter_errors(yaml.safe_load(values_yaml()))) == []


@pytest.mark.parametrize("process", PROCESSES)
def test_every_process_has_what_can_be_chosen_about_a_process(process: str) -> None:
    document = yaml.safe_load(values_yaml())[process]
    assert {"replicas", "resources", "settings", "priorityClassName", "nodeSelector", "tolerations"} <= document.keys()


def test_every_value_is_described() -> None:
    assert list(_undescribed(schema(), "")) == []


def _undescribed(group: dict[str, Any], path: str) -> list[str]:
    texts = []
    for name, part in group["properties"].items():
        if name in ("global", "enabled"):
            continue
        if "description" not in part:
            texts.append(f"{path}{name}")
        elif "default" not in part:
            texts += _undescribed(part, f"{path}{name}.")
    return texts


@pytest.mark.parametrize(
    "values",
    [
        {"webhok": {}},
        {"webhook": {"enabled": False}},
        {"webhook": {"settings": {"TRIMTAB_WEBHOOK_LISTEN": "0.0.0.0:1"}}},
        {"compactor": {"settings": {"TRIMTAB_COMPACTOR_LEASE_DURATION_SECONDS": 30}}},
        {"webhook": {"extraEnv": [{"name": "TRIMTAB_WEBHOOK_LISTEN", "value": "0.0.0.0:1"}]}},
        {"enabled": False},
        {"pools": {"a_b": {}}},
        {"pools": {"a": {"quiet": "soon"}}},
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, Any]) -> None:
    assert list(CHECK.iter_errors(values))
