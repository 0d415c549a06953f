"""What is found wrong with what was read: one table, a row for each fault."""

import re
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

import certs
from tests.cli.doctor.worlds import (
    ADAPTER,
    AVAILABLE,
    CLASS_UNKNOWN,
    CREATED,
    HIDDEN,
    NO_POD,
    NOW,
    OURS,
    PAIR,
    RESTORED_LIMIT,
    UNAVAILABLE,
    UNBOUND,
    VALIDATING,
    WELL,
    bad,
    configuration,
    hook,
    settings,
    vpas,
)
from trimtab.cli.doctor.command import CHECKS, is_well, judge_cluster
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pool import Pool, Precedence
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, NotAuthentic
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.diagnosis.autoscaling_state import AutoscalingState
from trimtab.diagnosis.finding import FindingSeverity
from trimtab.diagnosis.lease_state import LeaseState
from trimtab.diagnosis.observed import (
    AccountPolicy,
    AutoscalerState,
    CrdState,
    DeploymentState,
    DryRunResult,
    EstafetteState,
    ExpanderMapState,
    MetricsApiState,
    NamespaceState,
    PolicyState,
    SignatureState,
    UsageSourceState,
    Vpa,
)
from trimtab.diagnosis.reasons import NOT_CHECKED
from trimtab.diagnosis.references import ReferencesState
from trimtab.machines.expander_map import MAP_KEY
from trimtab.sizing.ranking.demotion import BASE_ANNOTATION, MANAGED_ANNOTATION

OTHER = certs.issue(["x"], now=NOW)
OLD = certs.issue([f"trimtab-webhook.{OURS}.svc"], now=NOW - timedelta(days=4000))
AGED = certs.issue([f"trimtab-webhook.{OURS}.svc"], now=NOW - timedelta(days=300))
RUNS = DeploymentState(replicas=2, ready_replicas=2)
SCALER = Autoscaler(updated=int(NOW.timestamp()))


def references(**other: object) -> dict[str, object]:
    """What policies, pools and processes name, with one thing other than it is where all is well."""
    assert isinstance(WELL.references, ReferencesState)
    return {"references": replace(WELL.references, **other)}


ACTING = PoolReading((Pool(name="web", dry_run=False),))
POLICY = PolicyState(name="sizes", mode="apply", generation=2, observed_generation=2)


def mutating(**other: Any) -> dict[str, Any]:
    return {"mutating": (configuration(hook(**other)),)}


def lease(**other: Any) -> dict[str, Any]:
    result = {"holder": "one", "renewed_at": NOW, "duration_seconds": 30, **other}
    return {"leases": {**WELL.leases, "compactor": LeaseState(**result)}}


def process(name: str, result: Any) -> dict[str, Any]:
    return {"processes": {**WELL.processes, name: result}}


def scaler(**flags: str) -> dict[str, Any]:
    arguments = tuple(f"--{name.replace('_', '-')}={value}" for name, value in flags.items())
    return {"autoscaler": AutoscalerState(status_report=SCALER, processes=(arguments,))}


ONLY_A = ExpanderMapState(data={MAP_KEY: "100: ['^a$']"})


def groups(*names: str) -> dict[str, Any]:
    """The autoscaler reports these node groups."""
    present = tuple(NodeGroupStatus(name=name, healthy=True, scale_up="NoActivity") for name in names)
    return {"autoscaler": AutoscalerState(status_report=replace(SCALER, groups=present))}


def leading(threshold: int) -> dict[str, Any]:
    """A pool leads, beside an autoscaler of this threshold (percent), of which the compactor was told."""
    flag = f"--scale-down-utilization-threshold={threshold / 100}"
    pool = Pool(name="web", autoscaler=Precedence.LEAD)
    message = {
        "processes": settings("compactor", TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS=flag),
        "pools": PoolReading((pool,)),
    }
    return {**scaler(scale_down_utilization_threshold=str(threshold / 100)), **message}


def pools_of(namespaces: frozenset[str] | None) -> dict[str, Any]:
    """The webhook of pools is sent ConfigMaps of these namespaces; None means all."""
    policies, pools = VALIDATING.hooks
    return {"validating": configuration(policies, replace(pools, included_namespaces=namespaces))}


POLICED = AccountPolicy(name="trimtab-compactor-nodes", process="compactor")
SCALING = Pool(name="web", single_replicas=True)
SIGNED = WELL.signatures
assert isinstance(SIGNED, SignatureState)
FORGED = NotAuthentic("n1", "it carries no signature", DrainAnnotation(drain="d1", pool="web", since=1))
BESIDE = EstafetteState(running=("Deployment tools/estafette-k8s-node-compactor",), stranded=("a",))
FAULTS: list[tuple[str, str, dict[str, Any]]] = [
    ("vpa-without-recommender", "error", {"vpa_statuses": vpas()["vpa_statuses"]}),
    ("vpa-names-several-recommenders", "warn", vpas(is_only_recommender=False)),
    ("vpa-recommendation-missing", "warn", vpas(has_recommendation=False)),
    ("vpa-recommendation-old", "error", vpas(used_until=NOW - timedelta(hours=3))),
    ("kubernetes-too-old", "error", {"version": (1, 29)}),
    ("kubernetes-untested", "warn", {"version": (1, 33)}),
    ("kubernetes-untested", "warn", {"version": (1, 37)}),
    ("clock-skew", "warn", {"server_time": NOW - timedelta(seconds=20)}),
    ("clock-skew", "error", {"server_time": NOW - timedelta(seconds=70)}),
    ("namespace-missing", "error", {"own_namespace": None}),
    ("signing-key-missing", "error", {"signatures": replace(SIGNED, keys=None)}),
    ("signing-key-missing", "error", {"signatures": replace(SIGNED, keys=False)}),
    ("webhook-signing-key-missing", "warn", {"signatures": replace(SIGNED, webhook_keys=None)}),
    ("webhook-signing-key-missing", "warn", {"signatures": replace(SIGNED, webhook_keys=False)}),
    (
        "renamed-word-on-node",
        "warn",
        {"signatures": replace(SIGNED, renamed=(("n1", "the taint trimtab.dev/leaving"),))},
    ),
    (
        "drain-annotation-not-authentic",
        "error",
        {"signatures": replace(SIGNED, annotations=DrainAnnotations(doubtful={"n1": FORGED}))},
    ),
    (
        "drain-orphaned",
        "warn",
        {
            "signatures": replace(
                SIGNED, annotations=DrainAnnotations(ours={"n1": FORGED.claim}), states={"web": PoolState()}
            )
        },
    ),
    ("state-deleted", "warn", {"signatures": replace(SIGNED, annotations=DrainAnnotations(ours={"n1": FORGED.claim}))}),
    ("state-not-authentic", "warn", {"signatures": replace(SIGNED, states={"web": HIDDEN})}),
    (
        "all-paused",
        "warn",
        {"own_namespace": NamespaceState(paused="namespace trimtab-system says trimtab.dev/paused: true")},
    ),
    ("webhook-paused", "warn", {"processes": settings("webhook", TRIMTAB_WEBHOOK_PAUSED="true")}),
    (
        "webhook-paused",
        "warn",
        {"pod_trial": DryRunResult(status=201, warnings=("trimtab: here, with 3 policies, paused",), seconds=0.01)},
    ),
    ("crd-missing", "error", {"crd": None}),
    ("crd-missing", "error", {"crd": CrdState(established=False, served=frozenset({"v1alpha1"}))}),
    ("crd-missing", "error", {"crd": CrdState(established=True, served=frozenset({"v1"}))}),
    ("pool-status-missing", "warn", {"pool_status_crd": None}),
    ("drain-order-missing", "warn", {"drain_order_crd": None}),
    ("metrics-api-unavailable", "error", {"metrics_api": MetricsApiState(api_services=(UNAVAILABLE,))}),
    ("metrics-api-not-registered", "warn", {"metrics_api": MetricsApiState(deployment=RUNS)}),
    (
        "metrics-api-other-provider",
        "error",
        {"metrics_api": MetricsApiState(api_services=(ADAPTER, AVAILABLE), deployment=RUNS)},
    ),
    ("process-missing", "error", process("webhook", None)),
    ("process-missing", "warn", process("watchdog", None)),
    ("process-not-ready", "error", process("webhook", DeploymentState(replicas=2, ready_replicas=0))),
    ("process-scaled-to-zero", "error", process("webhook", DeploymentState(replicas=0, ready_replicas=0))),
    ("process-scaled-to-zero", "warn", process("compactor", DeploymentState(replicas=0, ready_replicas=0))),
    ("process-not-ready", "warn", process("webhook", DeploymentState(replicas=2, ready_replicas=1))),
    ("namespace-mismatch", "error", {"processes": settings("compactor", TRIMTAB_NAMESPACE="elsewhere")}),
    ("permission-missing", "error", {"missing_permissions": {"webhook": ("list nodes", "watch nodes")}}),
    ("account-policy-missing", "error", {"account_policies": (replace(POLICED, is_there=False, is_bound=False),)}),
    ("account-policy-missing", "error", {"account_policies": (replace(POLICED, is_bound=False),)}),
    ("account-policy-missing", "warn", {"account_policies": None}),
    ("account-policy-differs", "warn", {"account_policies": (replace(POLICED, is_ours=False),)}),
    ("lease-not-held", "error", lease(holder="")),
    ("lease-not-held", "error", {"leases": {**WELL.leases, "compactor": None}}),
    ("lease-stale", "error", lease(renewed_at=NOW - timedelta(seconds=31))),
    ("lease-stale", "error", lease(renewed_at=None)),
    ("configuration-missing", "error", {"mutating": ()}),
    ("configuration-missing", "error", {"validating": None}),
    ("compiled-policy-not-bound", "error", {"compiled_policies": (UNBOUND,)}),
    ("ca-bundle-missing", "error", mutating(ca_bundle=b"")),
    ("service-mismatch", "error", mutating(service=("other", "trimtab-webhook"))),
    ("service-mismatch", "error", mutating(service=None)),
    ("failure-policy-fail", "error", mutating(fails_closed=True)),
    ("timeout-too-long", "warn", mutating(timeout_seconds=10)),
    ("reinvocation-never", "warn", mutating(reinvoked=False)),
    ("system-namespaces-selected", "error", mutating(excluded_namespaces=frozenset({OURS}))),
    ("pools-validated-elsewhere", "warn", pools_of(None)),
    ("pools-validated-elsewhere", "warn", pools_of(frozenset({OURS, "team"}))),
    ("webhook-not-called", "error", {"pod_trial": CREATED}),
    ("validation-not-called", "error", {"policy_trial": CREATED}),
    ("overhead-setting-mismatch", "error", {"processes": settings("webhook", TRIMTAB_OVERHEAD="webhook")}),
    ("autoscaler-not-found", "warn", {"autoscaler": AutoscalerState(status_report=None)}),
    (
        "autoscaler-status-unusable",
        "error",
        {"autoscaler": AutoscalerState(status_report=Unreadable("its status", "no YAML"))},
    ),
    (
        "autoscaler-status-unusable",
        "error",
        {"autoscaler": AutoscalerState(status_report=replace(SCALER, healthy=False))},
    ),
    (
        "autoscaler-status-unusable",
        "error",
        {"autoscaler": AutoscalerState(status_report=replace(SCALER, updated=SCALER.updated - 121))},
    ),
    (
        "autoscaler-status-unusable",
        "error",
        {"autoscaler": AutoscalerState(status_report=replace(SCALER, updated=None))},
    ),
    ("autoscaler-flags-differ", "warn", scaler(scale_down_unneeded_time="2m")),
    ("autoscaler-status-not-read", "warn", scaler(status_config_map_name="status-spot")),
    ("autoscaler-drains-same-nodes", "warn", leading(90)),
    ("estafette-still-running", "warn", {"estafette": BESIDE}),
    (
        "estafette-still-running",
        "error",
        {"estafette": BESIDE, "pools": PoolReading((Pool(name="web", dry_run=False),))},
    ),
    ("estafette-left-cordons", "warn", {"estafette": EstafetteState(running=(), stranded=("a", "b"))}),
    ("usage-source-missing", "warn", {"usage_source": UsageSourceState(name="metrics API", status=404)}),
    (
        "usage-source-failing",
        "error",
        {"usage_source": UsageSourceState(name="metrics API", status=503, message="no endpoints")},
    ),
    ("usage-source-failing", "error", {"usage_source": UsageSourceState(name="metrics API", status=200, empty=True)}),
    ("usage-source-failing", "error", {"usage_source": UsageSourceState(name="http://prometheus.obs.svc", status=404)}),
    ("vpa-webhook-unavailable", "warn", {"vpa": Vpa(installed=True, acts=False)}),
    (
        "policy-not-loaded",
        "error",
        {"policies": (replace(POLICY, invalid_reason="spec.actions: nothing", last_error="x"),)},
    ),
    ("policy-set-to-warn", "warn", {"policies": (replace(POLICY, brake_reason="set to warn: 3 of 5 pods"),)}),
    ("required-class-missing", "error", {"policies": (replace(POLICY, required_class="kata", is_class_missing=True),)}),
    ("policy-failing", "warn", {"policies": (replace(POLICY, last_error="division by zero"),)}),
    ("policy-names-what-is-missing", "warn", references(dangling=(("sizes", NOT_CHECKED("no class")),))),
    ("pool-without-nodes", "warn", references(nodes=())),
    ("autoscaling-rule", "warn", {"autoscaling": AutoscalingState(findings=(RESTORED_LIMIT,))}),
    ("processes-of-different-versions", "warn", references(images={"webhook": "trimtab:1", "watchdog": "trimtab:2"})),
    ("process-without-protection", "warn", references(protecting={})),
    (
        "resize-permission-missing",
        "warn",
        {**references(resizing=("sizes",), missing_resize_permissions=("patch pods/resize",)), "pools": ACTING},
    ),
    ("policy-status-outdated", "warn", {"policies": (replace(POLICY, observed_generation=1),)}),
    ("priority-map-invalid", "error", {"expander_map": ExpanderMapState(data={MAP_KEY: "100: [a"})}),
    ("priority-map-without-groups", "warn", {**groups("b"), "expander_map": ONLY_A}),
    ("priority-map-not-used", "warn", {**scaler(expander="least-waste"), "expander_map": ONLY_A}),
    (
        "priority-map-changed",
        "warn",
        {"expander_map": replace(ONLY_A, annotations={MANAGED_ANNOTATION: "yes", BASE_ANNOTATION: "0: ['.*']"})},
    ),
    ("pool-without-right-to-scale", "warn", {"pools": PoolReading((SCALING,))}),
    ("pool-without-right-to-scale", "warn", {"pools": PoolReading((Pool(name="web", surge=1),))}),
    (
        "pool-not-loaded",
        "error",
        {"pools": PoolReading((), (ConfigError(file="cluster", expected="rehearse or act"),))},
    ),
]


@pytest.mark.parametrize(("code", "severity", "other"), FAULTS)
def test_one_fault_is_one_finding_of_that_name_with_a_fix(code: str, severity: str, other: dict[str, Any]) -> None:
    assert bad(**other) == {code: severity}
    actual = [
        each.finding for each in judge_cluster(replace(WELL, **other)) if each.finding.severity != FindingSeverity.OK
    ]
    assert all(each.fix for each in actual)


@pytest.mark.parametrize("other", [*(other for _, _, other in FAULTS), {"secret": None}, {"secret": OLD}])
def test_every_command_of_a_fix_is_for_the_namespace_that_was_asked_for(other: dict[str, Any]) -> None:
    fixes = " ".join(each.finding.fix for each in judge_cluster(replace(WELL, namespace="ours", **other)))
    assert OURS not in fixes
    assert "NAMESPACE" not in fixes
    assert all(command.endswith("--system-namespace ours") for command in re.findall("`(trimtab certs [^`]*)`", fixes))


TOGETHER: list[tuple[set[str], dict[str, Any]]] = [
    ({"certificate-missing", "not-checked"}, {"secret": None}),
    ({"certificate-unusable", "ca-bundle-mismatch"}, {"secret": OTHER}),
    ({"certificate-unusable", "ca-bundle-mismatch"}, {"secret": OLD}),
    ({"ca-bundles-differ", "ca-bundle-mismatch"}, mutating(ca_bundle=OTHER.bundle)),
    (
        {"overhead-setting-mismatch"},
        {"runtime_class_trial": CREATED, "processes": settings("webhook", TRIMTAB_OVERHEAD="webhook")},
    ),
    (
        {"kubernetes-untested", "resize-not-supported"},
        {**references(resizing=("sizes",)), "pools": ACTING, "version": (1, 32)},
    ),
    ({"autoscaler-scale-down-disabled", "autoscaler-flags-differ"}, scaler(scale_down_enabled="false")),
    (
        {"lease-stale", "drain-without-compactor"},
        {
            **lease(renewed_at=NOW - timedelta(minutes=25)),
            "signatures": replace(
                SIGNED,
                annotations=DrainAnnotations(ours={"n1": FORGED.claim}),
                states={"web": PoolState(drains={"n1": "d1"})},
            ),
        },
    ),
]


@pytest.mark.parametrize(("codes", "other"), TOGETHER)
def test_what_follows_from_one_fault_is_told_with_it(codes: set[str], other: dict[str, Any]) -> None:
    assert set(bad(**other)) == codes


FINE: list[dict[str, Any]] = [
    {},
    {"server_time": NOW - timedelta(seconds=4)},
    {"server_time": NOW + timedelta(seconds=4)},
    {"vpa": Vpa(installed=True, acts=True)},
    {"policies": ()},
    {"pools": PoolReading(), "autoscaler": AutoscalerState(status_report=None)},
    {
        "autoscaler": AutoscalerState(status_report=None),
        "processes": settings("compactor", TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS="false"),
    },
    {
        **scaler(scale_down_unneeded_time="2m"),
        "processes": settings("compactor", TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS="--scale-down-unneeded-time=2m"),
    },
    {
        "runtime_class_trial": CREATED,
        "processes": {
            **WELL.processes,
            **{name: settings(name, TRIMTAB_OVERHEAD="webhook")[name] for name in ("webhook", "watchdog")},
        },
    },
    {"pools": PoolReading((Pool(name="web", dry_run=False),))},
    leading(50),
    leading(0),
    {"pools": PoolReading((SCALING,)), "processes": settings("compactor", TRIMTAB_COMPACTOR_SCALE_NAMESPACES="team")},
    {"account_policies": (), "processes": WELL.processes},
    {"mutating": (configuration(), configuration(hook("vpa.k8s.io"), name="vpa-webhook-config"))},
    {"mutating": (configuration(hook("first"), name="a-first"), configuration())},
    {"mutating": (configuration(), configuration(hook("once", reinvoked=False), name="zz"))},
]


@pytest.mark.parametrize("other", FINE)
def test_what_is_as_it_should_be_is_no_finding(other: dict[str, Any]) -> None:
    assert bad(**other) == {}


def test_whoever_is_asked_after_us_and_again_may_overrule() -> None:
    assert bad(mutating=(configuration(), configuration(hook("last.example.com"), name="zz"))) == {
        "another-webhook-called-later": "warn"
    }


def test_a_pair_past_two_thirds_is_due_and_still_works() -> None:
    both = {"mutating": (configuration(hook(ca_bundle=AGED.bundle)),)}
    hooks = tuple(replace(each, ca_bundle=AGED.bundle) for each in VALIDATING.hooks)
    assert bad(secret=AGED, validating=configuration(*hooks), **both) == {"certificate-renewal-due": "warn"}


def test_a_pair_without_our_name_is_of_no_use() -> None:
    other = certs.reissued_pair(PAIR, ["elsewhere.svc"], now=NOW)
    assert bad(secret=other) == {"certificate-unusable": "error"}


UNKNOWN = [
    field.name
    for field in fields(WELL)
    if field.name not in ("namespace", "trial_namespace", "local_time", "is_opted_out")
]
MANY = {"processes", "missing_permissions", "leases"}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_could_not_be_looked_at_is_unknown_and_never_ok(what: str) -> None:
    whole = getattr(WELL, what)
    hidden = dict.fromkeys(whole, HIDDEN) if what in MANY else HIDDEN
    results = judge_cluster(replace(WELL, **{what: hidden}))
    actual = {each.finding.severity for each in results if each.finding.severity != FindingSeverity.OK}
    assert actual == {FindingSeverity.UNKNOWN}
    assert not is_well(results)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"pod_trial": NO_POD}, "cannot create"),
        ({"pod_trial": CREATED, "is_opted_out": True}, "excludes its pods from Trimtab"),
        ({"pod_trial": CREATED, "is_opted_out": HIDDEN}, "who asks may not"),
        ({"pod_trial": DryRunResult(status=403, message="exceeded quota")}, "exceeded quota"),
        ({"policy_trial": NO_POD}, "cannot create"),
        ({"policy_trial": DryRunResult(status=404, message="not found")}, "a component other than Trimtab"),
        ({"runtime_class_trial": NO_POD}, "cannot create"),
    ],
)
def test_a_trial_that_was_stopped_before_it_reached_us_says_nothing_about_us(other: dict[str, Any], says: str) -> None:
    results = judge_cluster(replace(WELL, **other))
    [finding] = [each.finding for each in results if each.finding.severity != FindingSeverity.OK]
    assert finding.severity == FindingSeverity.UNKNOWN
    assert says in str(finding.reason)


def test_every_finding_is_of_a_kind_that_its_check_declares() -> None:
    general = {"no-problem-found", "not-checked"}
    for *_, other in FAULTS:
        for check_result in judge_cluster(replace(WELL, **other)):
            assert check_result.finding.reason.code.name in {code.name for code in check_result.check.may} | general


def test_every_declared_kind_of_finding_has_a_row_here() -> None:
    rows = {code for code, *_ in FAULTS}.union(
        *(codes for codes, _ in TOGETHER), {"another-webhook-called-later", "certificate-renewal-due"}
    )
    declared = {code.name for check in CHECKS for code in check.may}
    assert declared == rows - {"not-checked"}, f"add a row to FAULTS: {declared ^ (rows - {'not-checked'})}"


def test_a_check_is_left_out_by_name_and_warnings_count_strictly() -> None:
    paused = replace(WELL, own_namespace=NamespaceState(paused="so it is"))
    assert is_well(judge_cluster(paused))
    assert not is_well(judge_cluster(paused), strict=True)
    assert is_well(judge_cluster(paused, without=["namespace"]), strict=True)


def test_without_a_recommender_nobody_needs_usage() -> None:
    gone = {"usage_source": HIDDEN, "processes": {**WELL.processes, "recommender": None}}
    assert bad(**gone) == {"process-missing": "warn"}


def test_kubelets_need_no_metrics_api_and_cannot_be_looked_at() -> None:
    asks = replace(WELL.processes["recommender"], settings={"TRIMTAB_RECOMMENDER_USE_KUBELETS": "true"})
    without = {
        "usage_source": UsageSourceState(name="metrics API", status=404),
        "processes": {**WELL.processes, "recommender": asks},
    }
    assert bad(**without) == {"not-checked": "unknown"}


def test_the_overhead_setting_is_right_where_the_server_does_not_fill_it_in() -> None:
    assert CLASS_UNKNOWN.status == 403
    assert bad(runtime_class_trial=CREATED) == {"overhead-setting-mismatch": "error"}
