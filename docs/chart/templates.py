"""The manifests of `trimtab install` with holes for the chart's values, and what only a chart has."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from docs.chart.holes import block, each_variable, maybe, number, template, text
from trimtab.cluster.pool import LABEL
from trimtab.command.install.manifests import manifests
from trimtab.command.install.names import PROCESSES, Manifest, account, labels, manifest
from trimtab.command.install.values import Values
from trimtab.policy.document import API_VERSION, KIND

_NAMESPACE = text(".Release.Namespace")

HELPERS = """\
{{- define "trimtab.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}
{{- else }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}
"""


def templates() -> dict[str, str]:
    """File → text, one file per component."""
    found: dict[str, list[tuple[list[str], str]]] = {}
    for component, conditions, written in _documents():
        found.setdefault(component, []).append((conditions, written))
    files = {f"{component}.yaml": _joined(parts) for component, parts in found.items()}
    more = {"monitors.yaml": _monitors(), "policies.yaml": _policies(), "pools.yaml": _pools()}
    return {"_helpers.tpl": HELPERS, **files, **more}


def _documents() -> Iterator[tuple[str, list[str], str]]:
    """Component, conditions, text. Both ways to a certificate; what is the same in both stands once."""
    own, theirs = (_keyed(cert_manager) for cert_manager in (False, True))
    for key in dict.fromkeys((*own, *theirs)):
        if key[0] == "CustomResourceDefinition":
            continue
        some = own.get(key) or theirs[key]
        component = some["metadata"]["labels"].get("app.kubernetes.io/component", "namespace")
        yield component, _conditions(some["kind"], component), _either(own.get(key), theirs.get(key))


def _joined(parts: list[tuple[list[str], str]]) -> str:
    """Neighbours under the same conditions stand under them together."""
    groups = groupby(parts, key=lambda part: part[0])
    return "".join(_conditional(conditions, "".join(text_ for _, text_ in same)) for conditions, same in groups)


def _keyed(cert_manager: bool) -> dict[tuple[str, str], Manifest]:
    values = Values(
        namespace=_NAMESPACE, image=text('include "trimtab.image" .'), replicas=number(".Values.webhook.replicas"),
        timeout=number(".Values.webhook.timeoutSeconds"), service_port=number(".Values.webhook.servicePort"),
        cert_manager=cert_manager,
    )  # fmt: skip
    return {(item["kind"], item["metadata"]["name"]): _opened(item) for item in manifests(values)}


def _opened(item: Manifest) -> Manifest:
    return _chosen(item) if item["kind"] == "Deployment" else item


def _chosen(deployment: Manifest) -> Manifest:
    """With what can be chosen about a process."""
    process = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
    values, spec = f".Values.{process}", deployment["spec"]
    pod = spec["template"]
    inner = {
        **pod["spec"],
        **{key: maybe(f"{values}.{key}") for key in ("priorityClassName", "nodeSelector", "tolerations", "affinity")},
        "imagePullSecrets": maybe(".Values.image.pullSecrets"),
        "containers": [_container(found, values) for found in pod["spec"]["containers"]],
    }
    meta = {**pod["metadata"], "annotations": maybe(f"{values}.podAnnotations")}
    changed = {**spec, "replicas": number(f"{values}.replicas"), "template": {"metadata": meta, "spec": inner}}
    return {**deployment, "spec": changed}


def _container(found: Manifest, values: str) -> Manifest:
    form = text(f'{values}.settings.TRIMTAB_LOG_FORMAT | default "json"')
    env = [{**one, "value": form} if one["name"] == "TRIMTAB_LOG_FORMAT" else one for one in found["env"]]
    more = each_variable(f'omit {values}.settings "TRIMTAB_LOG_FORMAT"')
    return {
        **found, "imagePullPolicy": maybe(".Values.image.pullPolicy"), "env": [*env, more],
        "resources": block(f"{values}.resources"),
    }  # fmt: skip


def _conditions(kind: str, component: str) -> list[str]:
    found = [] if component in ("namespace", "webhook") else [f".Values.{component}.enabled"]
    named = {"Namespace": ".Values.namespace.create", "NetworkPolicy": ".Values.networkPolicy.enabled"}
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
    all_of = conditions[0] if len(conditions) == 1 else "and " + " ".join(conditions)
    return f"{{{{- if {all_of} }}}}\n{inner}{{{{- end }}}}\n"


def _monitors() -> str:
    every = "".join(
        _conditional(_conditions("PodMonitor", process), "---\n" + template(_monitor(process))) for process in PROCESSES
    )
    return _conditional([".Values.monitors.enabled"], every)


def _monitor(process: str) -> Manifest:
    endpoint: dict[str, Any] = {"port": "http", "path": "/metrics", "interval": text(".Values.monitors.interval")}
    if process == "webhook":
        # Its authority is its own, and pods are scraped by their address, which no certificate names.
        endpoint |= {"port": "https", "scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}
    spec = {"selector": {"matchLabels": labels(process)}, "podMetricsEndpoints": [endpoint]}
    found = manifest("monitoring.coreos.com/v1", "PodMonitor", account(process), component=process, spec=spec)
    chosen = block(f"(merge (dict {_words(labels(process))}) .Values.monitors.labels)")
    found["metadata"] |= {"namespace": _NAMESPACE, "labels": chosen}
    return found


def _words(found: dict[str, str]) -> str:
    return " ".join(f'"{word}"' for pair in found.items() for word in pair)


def _policies() -> str:
    item = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": text("$name"), "labels": labels()},
            "spec": block("$spec")}  # fmt: skip
    return "{{- range $name, $spec := .Values.policies }}\n---\n" + template(item) + "{{- end }}\n"


def _pools() -> str:
    meta = {"name": f"trimtab-pool-{text('$name')}", "namespace": text("$.Release.Namespace"),
            "labels": {**labels(), LABEL: text("$name")}}  # fmt: skip
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"pool.yaml": text("toYaml $pool")}}
    return "{{- range $name, $pool := .Values.pools }}\n---\n" + template(item) + "{{- end }}\n"
