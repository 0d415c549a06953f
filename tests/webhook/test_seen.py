"""What was seen in the cluster becomes the World decisions rest on."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.build import namespace, policy, runtime_class, vpa
from tests.policy.test_policy_store import stored
from trimtab.cluster.api.admissionregistration import EndpointSlice, MutatingWebhookConfiguration
from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.meta import ApiObject, Metadata
from trimtab.cluster.pause_mark import PAUSED_MARK
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.cluster_facts import NO_FACTS
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import DEFAULT_SETTINGS
from trimtab.policy.podpolicy import Policies
from webhook.policy_state import PolicyStateBuilder, WebhookPolicyState, list_sources, object_projections

OWN = DEFAULT_SETTINGS.own_namespace
NOW = 1_790_000_000
HOLDS = object_projections(OWN)
BASE = WebhookPolicyState(Policies(), NO_FACTS, DEFAULT_SETTINGS)
SERVICE = {"service": {"namespace": "kube-system", "name": "vpa-webhook"}, "caBundle": "Q0E="}


def there(seen: PolicyStateBuilder, *objects: ApiObject, kind: str = "") -> WebhookPolicyState:
    for result in objects:
        of = kind or type(result).__name__
        meta: Metadata = result.metadata  # type: ignore[attr-defined]
        seen.apply_event(WatchEvent(ChangeType.ADDED, of, (meta.namespace, meta.name), None, HOLDS[of](result)))
    return seen.build_state(now=NOW)


def gone(seen: PolicyStateBuilder, kind: str, name: str, namespace: str = "") -> WebhookPolicyState:
    seen.apply_event(WatchEvent(ChangeType.DELETED, kind, (namespace, name), None, None))
    return seen.build_state(now=NOW)


def configuration() -> Any:
    value = {"metadata": {"name": "v"}, "webhooks": [{"name": "vpa.k8s.io", "clientConfig": SERVICE}]}
    return msgspec.convert(value, MutatingWebhookConfiguration)


def endpoints() -> Any:
    labels = {"kubernetes.io/service-name": "vpa-webhook"}
    value = {"metadata": {"name": "s", "namespace": "kube-system", "labels": labels}, "endpoints": [{"conditions": {}}]}
    return msgspec.convert(value, EndpointSlice)


def test_the_clusters_policies_come_into_force_and_go() -> None:
    builder = PolicyStateBuilder(BASE, policies=True)
    assert [p.name for p in there(builder, stored("a"), kind="PodPolicy").policies.all] == ["a"]
    assert gone(builder, "PodPolicy", "a").policies.all == ()


def test_policies_of_a_folder_stay_whatever_the_cluster_holds() -> None:
    own = load_policies([("p.yaml", policy("{limits: {cpu: remove}}").encode())]).policies
    builder = PolicyStateBuilder(WebhookPolicyState(own, NO_FACTS, DEFAULT_SETTINGS), policies=False)
    assert there(builder, namespace()).policies is own
    assert "PodPolicy" not in {source.kind for source in list_sources(OWN, policies=False)}


def test_our_namespace_pauses_every_change_and_lets_it_go_on() -> None:
    builder = PolicyStateBuilder(BASE, policies=True)
    ours = Namespace(metadata=Metadata(name=OWN, annotations={PAUSED_MARK: "true"}))
    assert there(builder, ours).terms.paused
    assert not there(builder, Namespace(metadata=Metadata(name=OWN))).terms.paused


def test_the_setting_pauses_whatever_the_namespace_says() -> None:
    builder = PolicyStateBuilder(
        WebhookPolicyState(Policies(), NO_FACTS, replace(DEFAULT_SETTINGS, paused=True)), policies=True
    )
    assert there(builder, Namespace(metadata=Metadata(name=OWN, annotations={PAUSED_MARK: "false"}))).terms.paused


def test_the_vpas_webhook_acts_once_its_service_answers() -> None:
    builder = PolicyStateBuilder(BASE, policies=True)
    assert not there(builder, vpa()).facts.vpa_acts
    assert not there(builder, configuration()).facts.vpa_acts
    (slices,) = builder.added_lists
    assert slices.selector_query["labelSelector"] == "kubernetes.io/service-name=vpa-webhook"
    assert there(builder, endpoints()).facts.vpa_acts
    assert not gone(builder, "MutatingWebhookConfiguration", "v").facts.vpa_acts


def test_what_is_told_again_changes_nothing() -> None:
    builder = PolicyStateBuilder(BASE, policies=True)
    objects = [namespace(), runtime_class(), configuration()]
    before = there(builder, *objects)
    assert there(builder, *objects) is before


def test_no_pods_are_watched_and_no_foreign_config_maps() -> None:
    sources = list_sources(OWN, policies=True)
    assert "Pod" not in {source.kind for source in sources}
    assert [(s.namespace, s.label_selector) for s in sources if s.kind == "ConfigMap"] == [
        (OWN, "trimtab.dev/recommendations=v1")
    ]


@pytest.mark.parametrize("kind", ["ReplicaSet", "CronJob"])
def test_of_owners_that_tell_no_number_of_pods_only_the_metadata_is_asked_for(kind: str) -> None:
    (actual_source,) = (source for source in list_sources(OWN, policies=True) if source.kind == kind)
    assert "PartialObjectMetadata" in actual_source.accept_header("PartialObjectMetadata")
