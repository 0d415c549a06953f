"""Requests as parameters: what a ConfigMap of a namespace holds, and what it cannot carry."""

from tests.build import owner_key
from trimtab.cluster.recommendation import ContainerUsage, Percentiles
from trimtab.cluster.request_parameters import (
    MAX_BYTES,
    NAMESPACE_KEY,
    NamespaceRules,
    build_parameters,
    is_same_except_times,
)

NOW = 1_768_780_800
USAGE = ContainerUsage(
    cpu=Percentiles(p5="5m", p95="0.2", request="250m"),
    memory=Percentiles(p5="1Mi", p95="64Mi", floor="80Mi"),
    ends_at=NOW + 60,
)


def build(containers, now=NOW, **rules):
    keyed = {(owner_key(f"{kind}/{name}"), container): used for (kind, name, container), used in containers.items()}
    return build_parameters(keyed, NamespaceRules(**rules), now)


def test_amounts_are_whole_numbers_with_their_end():
    data = build({("Deployment", "api", "main"): USAGE}).data
    assert data["Deployment.api.main"] == (
        "until=2026-01-19T00:01:00Z cpu=250 cpu.p5=5 cpu.p95=200 cpu.sure=adaptive,p5,p95"
        " memory=67108864 memory.floor=83886080 memory.p5=1048576 memory.p95=67108864 memory.sure=adaptive,p5,p95"
    )


def test_the_namespace_says_what_bounds_its_pods():
    text = build({}, limit_ranges=1, hpas=("Deployment.b", "Deployment.a")).data[NAMESPACE_KEY]
    assert text == "until=2026-01-19T06:00:00Z limitranges=1 quotas=0 hpas=Deployment.a,Deployment.b vpas="


def test_an_entry_that_has_ended_is_left_out():
    assert set(build({("Deployment", "api", "main"): USAGE}, now=NOW + 60).data) == {NAMESPACE_KEY}


def test_a_key_that_is_too_long_is_named():
    built = build({("Deployment", "x" * 240, "main"): USAGE})
    assert built.not_carried == (f"Deployment.{'x' * 240}.main",)


def test_what_has_no_room_is_named():
    built = build({("Deployment", f"api-{number:05}", "main"): USAGE for number in range(6000)})
    assert sum(len(key) + len(text) for key, text in built.data.items()) <= MAX_BYTES
    assert len(built.data) - 1 + len(built.not_carried) == 6000


def test_only_times_differ_until_the_rules_end():
    first, later = build({("Job", "a", "b"): USAGE}).data, build({("Job", "a", "b"): USAGE}, now=NOW + 30).data
    assert is_same_except_times(first, later, namespace_expires_before="2026-01-19T03:00:00Z")
    assert not is_same_except_times(first, later, namespace_expires_before="2026-01-19T07:00:00Z")
    assert not is_same_except_times(first, build({}).data, namespace_expires_before="")


def test_kinds_of_other_groups_have_no_key_of_a_known_kind_and_none_that_two_share():
    owners = (
        ("StatefulSet", "cache", "main"),
        ("StatefulSet.apps.kruise.io", "cache", "main"),
        ("Kafka.a.io", "k", "main"),
    )
    data = build(dict.fromkeys(owners, USAGE)).data
    assert set(data) == {NAMESPACE_KEY, "StatefulSet.cache.main", "Kafka.k.main"}
    two = build(dict.fromkeys((("Kafka.a.io", "k", "main"), ("Kafka.b.io", "k", "main")), USAGE))
    assert (set(two.data), two.not_carried) == ({NAMESPACE_KEY}, ("Kafka.k.main", "Kafka.k.main"))
