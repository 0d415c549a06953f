"""Whose installation do API servers call?"""

from typing import Any

import pytest

from trimtab.command.install.carry import served_from


@pytest.mark.parametrize(
    ("configuration", "namespaces"),
    [
        ({}, set()),
        ({"webhooks": None}, set()),
        ({"webhooks": [{"clientConfig": {"url": "https://127.0.0.1"}}, {"clientConfig": None}]}, set()),
        ({"webhooks": [{"clientConfig": {"service": {"namespace": "a", "name": "w"}}}]}, {"a"}),
    ],
)
def test_a_configuration_names_the_namespaces_it_calls(configuration: dict[str, Any], namespaces: set[str]) -> None:
    assert served_from(configuration) == namespaces
