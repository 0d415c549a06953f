"""Laws of the requests that `trimtab recommend --patch` and `trimtab vpa propose` write: the API server takes them in
the same namespace, and a second run changes nothing."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.drawn_manifests import bounded_namespaces, namespaced
from tests.cli.report_runs import run_verb
from tests.cluster_of import Item, node
from trimtab.admission.apiserver.resourcequota import quota_usage
from trimtab.admission.resource_refusal import complete_resources
from trimtab.cluster import quantity
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.cluster_facts import from_snapshot

START = 1_767_571_200
STEP = 1800
USES = st.sampled_from(((0.02, 20), (0.3, 300), (2.0, 3000), (6.0, 14000)))
"""Cores and mebibytes at most."""


def write_usage(file: Path, uses: dict[str, tuple[float, int]]) -> Path:
    """Four days of one pod of Deployment web, as a wave between a tenth of the use and all of it."""
    rows = ["timestamp,namespace,workload,pod,container,cpu,memory"]
    for number in range(4 * 48):
        share = 0.55 + 0.45 * math.sin(number / 48 * 2 * math.pi)
        rows += [
            f"{START + number * STEP},shop,Deployment/web,web-a,{name},{cores * share:.4f},{mebibytes * share:.0f}Mi"
            for name, (cores, mebibytes) in uses.items()
        ]
    file.write_text("\n".join(rows))
    return file


def write_objects(file: Path, items: list[Item]) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump_all(items))
    return file


def rejection(file: Path) -> str:
    """What the API server says against the pods, without Trimtab; empty if it takes them."""
    pods = json.loads(run_verb("admit", "-f", file, "-o", "json").stdout)["pods"]
    return "; ".join(pod["refusedWithoutUs"]["message"] for pod in pods if pod["refusedWithoutUs"])


def merge(target: Any, patch: Any) -> Any:
    """A strategic merge: mappings by key, containers by name."""
    if isinstance(patch, dict):
        merged = {**target} if isinstance(target, dict) else {}
        return {**merged, **{name: merge(merged.get(name), value) for name, value in patch.items()}}
    if isinstance(patch, list):
        by_name = {one["name"]: one for one in patch}
        return [merge(one, by_name[one["name"]]) if one["name"] in by_name else one for one in target]
    return patch


def patched(items: list[Item], folder: Path) -> list[Item]:
    file = folder / "shop-deployment-web.yaml"
    return [merge(items[0], yaml.safe_load(file.read_text())), *items[1:]] if file.exists() else items


def containers_of(items: list[Item]) -> list[Item]:
    spec = items[0]["spec"]["template"]["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


@given(
    bounded_namespaces(),
    st.lists(USES, min_size=3, max_size=3),
    st.sampled_from(("p95", "adaptive", "max")),
    st.booleans(),
)
def test_every_patch_is_accepted_and_final(
    tmp_path_factory: pytest.TempPathFactory, items: list[Item], uses: list[Any], rule: str, guaranteed: bool
) -> None:
    folder = tmp_path_factory.mktemp("patches")
    usage = write_usage(folder / "usage.csv", dict(zip((c["name"] for c in containers_of(items)), uses, strict=False)))
    before = write_objects(folder / "before" / "all.yaml", items)
    options = ("--rule", rule, "--min-confidence", "0", "--allow-hpa", *(("--guaranteed",) if guaranteed else ()))

    def recommend(source: Path, target: Path) -> Item:
        result = run_verb("recommend", "--usage", usage, "--cluster", source, *options, "--patch", target, "-o", "json")
        assert result.exit_code == 0, result.output
        report: Item = json.loads(result.stdout)
        return report

    recommend(before, folder / "patches")
    result = patched(items, folder / "patches")
    if result == items:
        return
    after = write_objects(folder / "after" / "all.yaml", result)
    assert rejection(after) == "" or all("exceeded quota" in rejection(file) for file in (before, after))
    report = recommend(after, folder / "again")
    assert (report["changes"], patched(result, folder / "again")) == (0, result)


def requests_of_vpa(pod: Item, vpa: Item, ranges: list[Item], resource: str, *, largest: bool) -> Item:
    """The pod with the smallest or the largest requests that the VPA's webhook gives it: within the LimitRanges' min
    and max for containers, its own minAllowed and maxAllowed, and the limit (pkg/utils/vpa/capping.go, RequestsOnly).
    """
    changed = copy.deepcopy(pod)
    items = [one for limit_range in ranges for one in limit_range["spec"]["limits"] if one["type"] == "Container"]

    def bound(name: str, choose: Any) -> int | None:
        values = [
            quantity.scheduler_value(resource, one[name][resource]) for one in items if resource in one.get(name, {})
        ]
        return choose(values) if values else None

    low, high = bound("min", max), bound("max", min)
    for container in changed["spec"]["containers"]:
        policy = policy_of(vpa, container["name"])
        if policy.get("mode") == "Off" or resource not in policy["controlledResources"]:
            continue
        amount = 1 << 50 if largest else 1
        amount = max(amount, low or 0)
        amount = min(amount, high or amount)
        amount = max(amount, quantity.scheduler_value(resource, policy["minAllowed"][resource]))
        if resource in policy.get("maxAllowed", {}):
            amount = min(amount, quantity.scheduler_value(resource, policy["maxAllowed"][resource]))
        limit = container.get("resources", {}).get("limits", {}).get(resource)
        # Without a default, the API server takes the maximum.
        default = bound("default", lambda values: values[0]) or high
        held = quantity.scheduler_value(resource, limit) if limit else default
        amount = min(amount, held or amount)
        resources = container.setdefault("resources", {})
        resources["requests"] = {**resources.get("requests", {}), resource: quantity.format_quantity(resource, amount)}
    return changed


def policy_of(vpa: Item, container: str) -> Item:
    policies = vpa["spec"]["resourcePolicy"]["containerPolicies"]
    return next((one for one in policies if one["containerName"] == container), {"mode": "Off"})


def with_used_quotas(items: list[Item], own_pods: int, others: dict[str, str]) -> list[Item]:
    """The objects, with quotas that count this many pods of the Deployment, and what the rest of the namespace uses."""
    facts = from_snapshot(build_snapshot([Document(file="a", index=0, value=one) for one in items]).snapshot)
    pod = complete_resources(msgspec.convert(items[0]["spec"]["template"], Pod), facts, "shop")
    charged = {name: quantity.parse(amount) for name, amount in quota_usage(pod).items()}

    def used_of(name: str) -> str:
        return f"{quantity.parse(others[name]) + own_pods * charged.get(name, 0)}n"

    return [
        {**one, "status": {"hard": (hard := one["spec"]["hard"]), "used": {name: used_of(name) for name in hard}}}
        if one["kind"] == "ResourceQuota"
        else one
        for one in items
    ]


def errors_of_lint(file: Path) -> set[str]:
    findings = json.loads(run_verb("lint", "-f", file, "-o", "json").stdout)["findings"]
    return {one["sentence"] for one in findings if one["severity"] == "error"}


@st.composite
def used_amounts(draw: st.DrawFn) -> dict[str, str]:
    """What other workloads of the namespace use, by the names that quotas have for it."""
    used = {"cpu": draw(st.sampled_from(("0", "200m", "3"))), "memory": draw(st.sampled_from(("0", "300Mi", "5Gi")))}
    return {f"{side}.{name}": amount for side in ("requests", "limits") for name, amount in used.items()}


@given(bounded_namespaces(), st.lists(USES, min_size=3, max_size=3), used_amounts())
def test_every_request_of_a_proposed_vpa_is_accepted(
    tmp_path_factory: pytest.TempPathFactory, items: list[Item], uses: list[Any], others: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("vpas")
    items = with_used_quotas([*items, node("n", cpu="16", memory="64Gi")], 0, others)
    usage = write_usage(folder / "usage.csv", dict(zip((c["name"] for c in containers_of(items)), uses, strict=False)))
    before = write_objects(folder / "before" / "all.yaml", items)

    def propose(source: Path) -> list[Item]:
        result = run_verb("vpa", "propose", "--usage", usage, "--cluster", source, "--manifests")
        assert result.exit_code == 0, result.output
        return [one for one in yaml.safe_load_all(result.stdout) if one]

    vpas = propose(before)
    if not vpas:
        return
    ranges = [one for one in items if one["kind"] == "LimitRange"]
    for resource in ("cpu", "memory"):
        for largest in (False, True):
            changed = copy.deepcopy(items)
            template = changed[0]["spec"]["template"]
            changed[0]["spec"]["template"] = requests_of_vpa(template, vpas[0], ranges, resource, largest=largest)
            # The last successor: the other two pods of the Deployment have the new requests already.
            changed = with_used_quotas(changed, 2, others)
            after = write_objects(folder / f"{resource}-{largest}" / "all.yaml", changed)
            assert (rejection(after), resource, largest) == ("", resource, largest)
    proposed = write_objects(folder / "with" / "all.yaml", [*items, *vpas])
    assert errors_of_lint(proposed) <= errors_of_lint(before)
    assert propose(proposed) == []


@pytest.mark.parametrize(("hard", "largest"), [("400m", None), ("9", "3"), ("90", "15")])
def test_a_quota_bounds_what_a_proposed_vpa_requests(tmp_path: Path, hard: str, largest: str | None) -> None:
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    web = namespaced(
        "apps/v1",
        "Deployment",
        spec={
            "replicas": 3,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    )
    quota = namespaced("v1", "ResourceQuota", spec={"hard": {"requests.cpu": hard}})
    quota["status"] = {"hard": quota["spec"]["hard"], "used": {"requests.cpu": "0"}}
    usage = write_usage(tmp_path / "usage.csv", {"app": (6.0, 20)})
    cluster = write_objects(tmp_path / "before" / "all.yaml", [web, quota, node("n", cpu="15", memory="64Gi")])
    report, manifests = (
        run_verb("vpa", "propose", "--usage", usage, "--cluster", cluster, *more).stdout
        for more in (("-o", "json"), ("--manifests",))
    )
    [workload] = json.loads(report)["proposals"]
    vpas = [one for one in yaml.safe_load_all(manifests) if one]
    proposed = policy_of(vpas[0], "app")["maxAllowed"]["cpu"] if vpas else None
    assert (proposed, workload["reason"]["code"]) == (
        (largest, "vpa-worth-it") if largest else (None, "vpa-exceeds-quota")
    )
