"""The manifests of `trimtab install` with holes for the chart's values, and what only a chart has."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from deploy.observe.rules import RUNBOOKS
from docs.chart.chosen import WRITES_VPA_STATUS, hook, opened, values_key
from docs.chart.connection_test import connection_test
from docs.chart.holes import block, number, template, text
from docs.chart.observed import boards, monitor, rule
from trimtab.cli.install.cleanup import render_uninstall_job
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.processes import COMPACTOR, METRICS_API, RECOMMENDER
from trimtab.installation.installed_processes import render_uninstall_policies
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import PROCESSES, VPA_MODE, InstallValues, Manifest, component_labels
from trimtab.installation.processes.captures import CAPTURE
from trimtab.installation.processes.metrics_api import RULES
from trimtab.installation.rbac import render_resize_role, render_scale_role
from trimtab.installation.vpa_status_access import ROLE_NAME as VPA_STATUS_ROLE
from trimtab.metricsapi.rules import RULES_KEY
from trimtab.policy.policy_kind import API_VERSION, KIND

_NAMESPACE = text(".Release.Namespace")
_NOT_ALONE = f'ne .Values.mode "{VPA_MODE}"'
"""Whether more than the recommender is installed, as a template's condition."""

HELPERS = (
    """\
{{- define "trimtab.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}
{{- else }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}
{{- define "trimtab.egress" -}}
{{- with .Values.networkPolicy.egress }}
{{- if .enabled }}
egress:
- ports:
  - {protocol: UDP, port: 53}
  - {protocol: TCP, port: 53}
{{- with .apiServerPorts }}
- ports:
  {{- range . }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end }}
{{- with .more }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- define "trimtab.rules" -}}
{{- $values := .Values }}
groups:
{{- range (.Files.Get "rules.yaml" | replace "RUNBOOKS" $values.rules.runbooks | fromYaml).groups }}
{{- $process := index (splitList "." .name) 1 }}
{{- $enabled := ne (toString (index $values $process).enabled) "false" }}
{{- if ternary (eq $process "RECOMMENDER") $enabled (eq $values.mode "VPA_MODE") }}
- {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
""".replace("RUNBOOKS", RUNBOOKS)
    .replace("VPA_MODE", VPA_MODE)
    .replace("RECOMMENDER", RECOMMENDER.name)
)


def templates() -> dict[str, str]:
    """File → text, one file per component."""
    found: dict[str, list[tuple[list[str], str]]] = {}
    for component, conditions, written in _documents():
        found.setdefault(component, []).append((conditions, written))
    files = {f"{component}.yaml": _joined(parts) for component, parts in found.items()}
    compactor, metrics_api = (_conditions("", process) for process in (COMPACTOR.name, METRICS_API.name))
    files["compactor.yaml"] += _conditional(compactor, _scaling("compactor"))
    files["compactor.yaml"] += _conditional([*compactor, ".Values.compactor.resize"], _resizing())
    files["metrics-api.yaml"] += _conditional(metrics_api, _metric_rules())
    more = {
        "monitors.yaml": _monitors(),
        "rules.yaml": _rules(),
        "dashboards.yaml": _dashboards(),
        "uninstall.yaml": _uninstall(),
        "policies.yaml": _policies(),
        "pools.yaml": _pools(),
        "tests/webhook-answers.yaml": _conditional(
            [_NOT_ALONE], "---\n" + template(connection_test(_values(cert_manager=False)))
        ),
    }
    return {"_helpers.tpl": HELPERS, **files, **more}


def _documents() -> Iterator[tuple[str, list[str], str]]:
    """Component, conditions, text. Both ways to a certificate; what is the same in both stands once."""
    own, theirs = (_keyed(cert_manager) for cert_manager in (False, True))
    for key in dict.fromkeys((*own, *theirs)):
        if key[0] == "CustomResourceDefinition":
            continue
        some = own.get(key) or theirs[key]
        component = some["metadata"]["labels"].get("app.kubernetes.io/component", "namespace")
        conditions = _conditions(some["kind"], component)
        if key in (("ClusterRole", VPA_STATUS_ROLE), ("ClusterRoleBinding", VPA_STATUS_ROLE)):
            conditions.append(WRITES_VPA_STATUS)
        yield component, conditions, _either(own.get(key), theirs.get(key))


def _joined(parts: list[tuple[list[str], str]]) -> str:
    """Neighbours under the same conditions stand under them together."""
    groups = groupby(parts, key=lambda part: part[0])
    return "".join(_conditional(conditions, "".join(text_ for _, text_ in same)) for conditions, same in groups)


def _keyed(cert_manager: bool) -> dict[tuple[str, str], Manifest]:
    return {(item["kind"], item["metadata"]["name"]): opened(item) for item in render_manifests(_values(cert_manager))}


def _values(cert_manager: bool) -> InstallValues:
    return InstallValues(
        namespace=_NAMESPACE,
        image=text('include "trimtab.image" .'),
        replicas=number(".Values.webhook.replicas"),
        timeout=number(".Values.webhook.timeoutSeconds"),
        service_port=number(".Values.webhook.servicePort"),
        metrics_api=True,
        vpa_recommender=True,
        capture_claim=text(".Values.capture.claim"),
        capture_every=text(".Values.capture.every"),
        capture_keep=text(".Values.capture.keep"),
        cert_manager=cert_manager,
        autoscaler_namespace=text(".Values.compactor.autoscaler.namespace"),
        autoscaler_status=text(".Values.compactor.autoscaler.status"),
    )


def _conditions(kind: str, component: str) -> list[str]:
    enabled = f".Values.{values_key(component)}.enabled"
    if component == RECOMMENDER.name:
        found = [f'or {enabled} (eq .Values.mode "{VPA_MODE}")']
    elif component == CAPTURE:
        found = [".Values.capture.claim", _NOT_ALONE]
    else:
        found = [] if component in ("namespace", "webhook") else [enabled]
        found += [] if component == "namespace" else [_NOT_ALONE]
    named = {
        "Namespace": ".Values.namespace.create",
        "NetworkPolicy": ".Values.networkPolicy.enabled",
        "MutatingWebhookConfiguration": 'ne .Values.mode "policies"',
    }
    return [*found, *([named[kind]] if kind in named else [])]


def _either(own: Manifest | None, theirs: Manifest | None) -> str:
    """With the replicas' own certificates, or with cert-manager's."""
    if own == theirs:
        return "---\n" + template(own)
    first = _conditional(["not .Values.webhook.certManager"], "---\n" + template(own)) if own else ""
    second = _conditional([".Values.webhook.certManager"], "---\n" + template(theirs)) if theirs else ""
    return first + second


def _conditional(conditions: list[str], inner: str) -> str:
    if not conditions:
        return inner
    parts = [f"({condition})" if " " in condition else condition for condition in conditions]
    all_of = conditions[0] if len(conditions) == 1 else "and " + " ".join(parts)
    return f"{{{{- if {all_of} }}}}\n{inner}{{{{- end }}}}\n"


def _monitors() -> str:
    made = {
        process: monitor(process, _NAMESPACE, text(".Values.monitors.interval"), ".Values.monitors.labels")
        for process in (*PROCESSES, METRICS_API.name)
    }
    every = "".join(
        _conditional(_conditions("PodMonitor", process), "---\n" + template(found)) for process, found in made.items()
    )
    return _conditional([".Values.monitors.enabled"], every)


def _rules() -> str:
    groups = block('(include "trimtab.rules" . | fromYaml).groups')
    return _conditional([".Values.rules.enabled"], "---\n" + template(rule(_NAMESPACE, groups, ".Values.rules.labels")))


def _dashboards() -> str:
    every = "".join("---\n" + template(found) for found in boards(_NAMESPACE))
    return _conditional([".Values.dashboards.enabled"], every)


def _uninstall() -> str:
    every = "".join("---\n" + template(hook(found)) for found in render_uninstall_job(_values(cert_manager=False)))
    every += _scaling("uninstall")
    # Not hooks: they must be in force when the hook's Job begins.
    every += "".join("---\n" + template(found) for found in render_uninstall_policies(_values(cert_manager=False)))
    return _conditional([".Values.uninstall.hook"], every)


def _resizing() -> str:
    """The right to resize running pods."""
    return "".join("---\n" + template(item) for item in render_resize_role("compactor", _values(cert_manager=False)))


def _scaling(process: str) -> str:
    """The right to scale Deployments, in each namespace that the values name."""
    found = render_scale_role(
        process, text("."), replace(_values(cert_manager=False), namespace=text("$.Release.Namespace"))
    )
    every = "".join("---\n" + template(hook(item) if process == "uninstall" else item) for item in found)
    return "{{- range .Values.compactor.scaleNamespaces }}\n" + every + "{{- end }}\n"


def _metric_rules() -> str:
    """The ConfigMap of rules, from the values."""
    labels = component_labels(METRICS_API.name)
    meta = {"name": RULES, "namespace": _NAMESPACE, "labels": labels}
    data = {RULES_KEY: text('dict "rules" .Values.metricsApi.rules | toYaml')}
    return "---\n" + template({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


def _policies() -> str:
    item = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": text("$name"), "labels": component_labels()},
        "spec": block("$spec"),
    }
    return "{{- range $name, $spec := .Values.policies }}\n---\n" + template(item) + "{{- end }}\n"


def _pools() -> str:
    meta = {
        "name": f"trimtab-pool-{text('$name')}",
        "namespace": text("$.Release.Namespace"),
        "labels": {**component_labels(), POOL_LABEL: text("$name")},
    }
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"pool.yaml": text("toYaml $pool")}}
    return "{{- range $name, $pool := .Values.pools }}\n---\n" + template(item) + "{{- end }}\n"
