"""P5 is given only where the VPA's own webhook can take over."""

import msgspec
import pytest

from trimtab.cluster.api.admissionregistration import EndpointSlice, MutatingWebhookConfiguration
from trimtab.policy.vpa_webhook import find_vpa_targets, find_webhook_reach, retain_endpoints, target_services

SERVICE = {"service": {"namespace": "kube-system", "name": "vpa-webhook"}, "caBundle": "Q0E="}


def configuration(client_config, name="vpa.k8s.io"):
    value = {"metadata": {"name": "vpa-webhook-config"}, "webhooks": [{"name": name, "clientConfig": client_config}]}
    return {("", "vpa-webhook-config"): find_vpa_targets(msgspec.convert(value, MutatingWebhookConfiguration))}


def slice_of(*ready, service="vpa-webhook"):
    value = {
        "metadata": {"name": "s", "namespace": "kube-system", "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"conditions": {} if r is None else {"ready": r}} for r in ready],
    }
    return {("kube-system", "s"): retain_endpoints(msgspec.convert(value, EndpointSlice))}


def test_it_acts_with_a_trusted_configuration_and_somebody_who_answers():
    assert find_webhook_reach(configuration(SERVICE), slice_of(False, True))


@pytest.mark.parametrize(
    ("configurations", "slices"),
    [
        ({}, slice_of(True)),
        (configuration(SERVICE, name="other.example.com"), slice_of(True)),
        (configuration({"service": SERVICE["service"]}), slice_of(True)),
        (configuration(SERVICE), {}),
        (configuration(SERVICE), slice_of()),
        (configuration(SERVICE), slice_of(False)),
        (configuration(SERVICE), slice_of(True, service="other")),
    ],
    ids=["no configuration", "another", "no bundle", "no slice", "no endpoint", "none ready", "another service"],
)
def test_it_cannot_act(configurations, slices):
    assert not find_webhook_reach(configurations, slices)


def test_an_endpoint_of_which_nothing_is_known_counts_as_ready():
    assert find_webhook_reach(configuration(SERVICE), slice_of(None))


def test_behind_a_url_nobody_can_look():
    assert find_webhook_reach(configuration({"url": "https://vpa.example:443/"}), {})


def test_only_a_trusted_services_endpoints_are_asked_for():
    assert target_services(configuration(SERVICE)) == {("kube-system", "vpa-webhook")}
    assert target_services(configuration({"service": SERVICE["service"]})) == frozenset()
