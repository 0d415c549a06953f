"""What the threat model says of stolen tokens, tried on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.installed import Installed
from trimtab.installation.names import CONFIGURATION_NAME
from webhook import cert_manager

Configuration = dict[str, Any]


@pytest.fixture(scope="module")
def thief(here: Installed) -> Cluster:
    """The webhook's account, where the installation's own policy holds."""
    cluster = Cluster(here.login, here.values.namespace)
    here.cluster.eventually(lambda: _refused(cluster, "MutatingWebhookConfiguration", lambda c: _first(c).update(OURS)))
    return cluster


OURS = {"timeoutSeconds": 9}
ELSEWHERE = {"url": "https://198.51.100.1/all", "caBundle": None}


def _first(configuration: Configuration) -> Configuration:
    actual_configuration: Configuration = configuration["webhooks"][0]
    return actual_configuration


def _put(thief: Cluster, kind: str, change: Callable[[Configuration], Any]) -> None:
    """Tried, and never stored."""
    result = thief.get(kind, CONFIGURATION_NAME)
    change(result)
    path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s/{CONFIGURATION_NAME}?dryRun=All"
    thief.api.request("PUT", path, result)


def _refused(thief: Cluster, kind: str, change: Callable[[Configuration], Any]) -> bool:
    try:
        _put(thief, kind, change)
    except ApiError as error:
        if error.status == 409:  # a replica wrote the bundle in between
            return _refused(thief, kind, change)
        return "trimtab-webhook-cabundle" in str(error)
    return False


STOLEN: dict[str, Callable[[Configuration], Any]] = {
    "all objects": lambda c: _first(c)["rules"][0].update(resources=["*/*"], apiGroups=["*"]),
    "secrets too": lambda c: _first(c)["rules"].append(
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["secrets"], "scope": "*"}
    ),
    "elsewhere": lambda c: _first(c).update(clientConfig=ELSEWHERE),
    "another service": lambda c: _first(c)["clientConfig"]["service"].update(name="theirs"),
    "another path": lambda c: _first(c)["clientConfig"]["service"].update(path="/theirs"),
    "so that it blocks": lambda c: _first(c).update(failurePolicy="Fail"),
    "so that it waits": lambda c: _first(c).update(timeoutSeconds=30),
    "one more": lambda c: c["webhooks"].append({**_first(c), "name": "one.more.example"}),
    "one less": lambda c: c["webhooks"].clear(),
    "other namespaces": lambda c: _first(c).update(namespaceSelector={"matchLabels": {"team": "a"}}),
    "other objects": lambda c: _first(c).update(objectSelector={"matchLabels": {"team": "a"}}),
    "mirrors too": lambda c: _first(c).update(matchConditions=[{"name": "all", "expression": "true"}]),
}


@pytest.mark.parametrize("kind", cert_manager.CONFIGURATIONS)
@pytest.mark.parametrize("name", STOLEN)
def test_the_account_may_not_call_us_otherwise(thief: Cluster, kind: str, name: str) -> None:
    assert _refused(thief, kind, STOLEN[name])


def test_and_still_keeps_the_ca_bundle(here: Installed, thief: Cluster) -> None:
    before = here.places
    here.command("certs", "rotate", "--authority")
    here.cluster.eventually(lambda: here.places != before, within=60, what="another authority in both configurations")
    here.cluster.eventually(here.calls, what="pods changed")


def test_an_account_that_is_deleted_takes_its_tokens_with_it(here: Installed) -> None:
    thief = Cluster(here.login_of("recommender"), here.values.namespace)
    thief.list("Pod", everywhere=True)
    here.cluster.api.request(
        "DELETE", f"/api/v1/namespaces/{here.values.namespace}/serviceaccounts/trimtab-recommender"
    )
    here.cluster.eventually(lambda: _logged_out(thief), within=30, what="the token is worth nothing")


def _logged_out(thief: Cluster) -> bool:
    try:
        thief.list("Pod", everywhere=True)
    except ApiError as error:
        return error.status == 401
    return False
