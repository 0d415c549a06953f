"""A manifest with holes for what can be chosen about objects of its kind."""

from typing import Any

from docs.chart.holes import block, each_variable, items, maybe, number, text
from trimtab.installation.names import VPA_MODE, Manifest
from trimtab.runtime.environment import variable_name

WRITES_VPA_STATUS = f'or .Values.recommender.vpa (eq .Values.mode "{VPA_MODE}")'
"""Whether the recommender writes the status of VPAs, as a template's condition."""


def opened(item: Manifest) -> Manifest:
    found = {
        "CronJob": _cron_job,
        "Deployment": _deployment,
        "NetworkPolicy": _policy,
        "PodDisruptionBudget": _budget,
        "ServiceAccount": _account,
    }.get(item["kind"])
    return found(item) if found else item


def hook(item: Manifest) -> Manifest:
    """There while Helm uninstalls, and gone when it went well; the account and its rights stand before the Job."""
    annotations = {
        **item["metadata"].get("annotations", {}),
        "helm.sh/hook": "pre-delete",
        "helm.sh/hook-weight": "0" if item["kind"] == "Job" else "-1",
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }
    made = {**item, "metadata": {**item["metadata"], "annotations": annotations}}
    return {**made, "spec": _job(made["spec"])} if item["kind"] == "Job" else made


def _process(item: Manifest) -> str:
    return f".Values.{values_key(item['metadata']['labels']['app.kubernetes.io/component'])}"


def values_key(component: str) -> str:
    """A component's key in the values: templates cannot name one with a dash."""
    head, *rest = component.split("-")
    return head + "".join(part.capitalize() for part in rest)


def _deployment(item: Manifest) -> Manifest:
    values, spec = _process(item), item["spec"]
    pod = spec["template"]
    inner = {
        **pod["spec"],
        **{key: maybe(f"{values}.{key}") for key in ("priorityClassName", "nodeSelector", "tolerations", "affinity")},
        "imagePullSecrets": maybe(".Values.image.pullSecrets"),
        "topologySpreadConstraints": [
            {**found, "whenUnsatisfiable": text(f"{values}.spread")}
            for found in pod["spec"]["topologySpreadConstraints"]
        ],
        "containers": [_container(found, values) for found in pod["spec"]["containers"]],
        "volumes": _with_more(pod["spec"], "volumes", f"{values}.extraVolumes"),
    }
    own = " ".join(f'"{word}"' for pair in pod["metadata"]["labels"].items() for word in pair)
    meta = {
        **pod["metadata"],
        # The first map wins: selectors rest on Trimtab's own labels.
        "labels": block(f"(merge (dict {own}) {values}.podLabels)"),
        "annotations": maybe(f"{values}.podAnnotations"),
    }
    changed = {**spec, "replicas": number(f"{values}.replicas"), "template": {"metadata": meta, "spec": inner}}
    return {**item, "spec": changed}


def _container(found: Manifest, values: str) -> Manifest:
    form = text(f'{values}.settings.TRIMTAB_LOG_FORMAT | default "json"')
    chosen = {
        variable_name("recommender", "write_vpa_status"): text(f"({WRITES_VPA_STATUS}) | toString"),
        "TRIMTAB_LOG_FORMAT": form,
        "TRIMTAB_COMPACTOR_SCALE_NAMESPACES": text(f'join ":" {values}.scaleNamespaces'),
    }
    env = [{**one, "value": chosen.get(one["name"], one["value"])} for one in found["env"]]
    more = each_variable(f'omit {values}.settings "TRIMTAB_LOG_FORMAT"')
    return {
        **found,
        "imagePullPolicy": maybe(".Values.image.pullPolicy"),
        "env": [*env, more, items(f"{values}.extraEnv")],
        "resources": block(f"{values}.resources"),
        "volumeMounts": _with_more(found, "volumeMounts", f"{values}.extraVolumeMounts"),
    }


def _with_more(owner: Manifest, key: str, values: str) -> Any:
    """The list of its own with those of the values after it; without one of its own, the values' alone."""
    return [*owner[key], items(values)] if owner.get(key) else maybe(values)


def _account(item: Manifest) -> Manifest:
    annotations = maybe(f"{_process(item)}.serviceAccount.annotations")
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}


def _cron_job(item: Manifest) -> Manifest:
    """Where its pods may run, on which volume they write, and how often."""
    values, spec = _process(item), item["spec"]
    job = spec["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    [container] = pod["containers"]
    inner = {
        **pod,
        **{key: maybe(f"{values}.{key}") for key in ("nodeSelector", "tolerations")},
        "imagePullSecrets": maybe(".Values.image.pullSecrets"),
        "containers": [
            {
                **container,
                "imagePullPolicy": maybe(".Values.image.pullPolicy"),
                "resources": block(f"{values}.resources"),
            }
        ],
    }
    template = {**job["template"], "spec": inner}
    return {**item, "spec": {**spec, "jobTemplate": {"spec": {**job, "template": template}}}}


def _policy(item: Manifest) -> Manifest:
    """Inward from whom, and outward where that is forbidden, too."""
    [rule] = item["spec"]["ingress"]
    # API servers come from addresses that no selector knows.
    is_called = _process(item) in (".Values.webhook", ".Values.metricsApi")
    scrapers = {} if is_called else {"from": maybe(".Values.networkPolicy.metricsFrom")}
    both = 'ternary (list "Ingress" "Egress") (list "Ingress") .Values.networkPolicy.egress.enabled'
    outward = maybe('(include "trimtab.egress" . | fromYaml).egress')
    spec = {**item["spec"], "policyTypes": block(f"({both})"), "ingress": [{**rule, **scrapers}], "egress": outward}
    return {**item, "spec": spec}


def _budget(item: Manifest) -> Manifest:
    return {**item, "spec": {**item["spec"], "maxUnavailable": number(f"{_process(item)}.maxUnavailable")}}


def _job(spec: Manifest) -> Manifest:
    """Where its pod may run, and what it is told to keep."""
    inner = spec["template"]["spec"]
    [found] = inner["containers"]
    words = " ".join(".Release.Namespace" if "«" in word else f'"{word}"' for word in found["args"])
    args = block(f'(ternary (list {words} "--keep-usage") (list {words}) .Values.uninstall.keepUsage)')
    container = {**found, "args": args, "imagePullPolicy": maybe(".Values.image.pullPolicy")}
    chosen = {key: maybe(f".Values.uninstall.{key}") for key in ("nodeSelector", "tolerations")}
    pull = {"imagePullSecrets": maybe(".Values.image.pullSecrets")}
    return {**spec, "template": {**spec["template"], "spec": {**inner, **chosen, **pull, "containers": [container]}}}
