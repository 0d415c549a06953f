"""What a webhook configuration says of whom API servers call."""

from typing import Any

import pytest

from trimtab.kube.certificate_rotation import service_namespaces


@pytest.mark.parametrize(
    ("configuration", "found"),
    [
        ({}, set()),
        ({"webhooks": None}, set()),
        ({"webhooks": [{"clientConfig": {"url": "https://127.0.0.1"}}, {"clientConfig": None}]}, set()),
        ({"webhooks": [{"clientConfig": {"service": {"namespace": "a", "name": "w"}}}]}, {"a"}),
    ],
)
def test_a_configuration_names_the_namespaces_it_calls(configuration: dict[str, Any], found: set[str]) -> None:
    assert service_namespaces(configuration) == found
