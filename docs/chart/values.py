"""What can be chosen about the chart. One schema holds descriptions and defaults; values.yaml is written from it."""

import textwrap
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import yaml

from deploy.observe.rules import RUNBOOKS
from docs.chart.observed import GRAFANA, INTERVAL
from trimtab.cluster.documents.document_schema import schema_of
from trimtab.cluster.pool_config import pool_settings
from trimtab.cluster.processes import METRICS_API, account_name
from trimtab.compactor.settings import Settings as CompactorSettings
from trimtab.installation.installed_processes import find_installed_process
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import PROCESSES, VPA_MODE, InstallValues, Manifest
from trimtab.metricsapi.settings import Settings as MetricsApiSettings
from trimtab.policy.schema import spec_schema
from trimtab.recommender.settings import Settings as RecommenderSettings
from trimtab.runtime.environment import variable_name
from trimtab.runtime.settings import Settings
from trimtab.watchdog.settings import Settings as WatchdogSettings

Schema = dict[str, Any]

SETTINGS: dict[str, type] = {
    "webhook": Settings,
    "watchdog": WatchdogSettings,
    "compactor": CompactorSettings,
    "recommender": RecommenderSettings,
    METRICS_API.name: MetricsApiSettings,
}
DEFAULTS = InstallValues(metrics_api=True)
_OBJECT: Schema = {"type": "object"}
_NAME = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


def schema() -> Schema:
    """values.schema.json. Helm refuses what it does not know, with the place."""
    own = {name: _process(name) for name in PROCESSES}
    own["webhook"]["properties"] = {**_only_webhook(), **own["webhook"]["properties"]}
    own["compactor"]["properties"] = {**own["compactor"]["properties"], "autoscaler": _autoscaler()}
    own["compactor"]["properties"] |= _only_compactor()
    own["recommender"]["properties"]["vpa"] = _any(
        "boolean",
        "Whether the recommender writes the status of VPAs that name `trimtab` as their only recommender "
        "(docs/how-to/keep-your-vpa.md). With `mode: vpa` it always does.",
        DEFAULTS.vpa_recommender,
    )
    own["metricsApi"] = _process(METRICS_API.name)
    own["metricsApi"]["properties"]["enabled"] = _any(
        "boolean",
        "Whether to serve custom metrics for HPAs. A cluster has one provider of them: remove any other one first.",
        False,
    )
    own["metricsApi"]["properties"]["rules"] = _any(
        "array", "The metrics that it serves: docs/how-to/scale-by-request-rate.md.", [], items=_OBJECT
    )
    found = {
        "image": _image(),
        "mode": _mode(),
        **own,
        "capture": _capture(),
        "networkPolicy": _network(),
        "monitors": _monitors(),
        "rules": _rules(),
        "dashboards": _dashboards(),
        "policies": _policies(),
        "pools": _pools(),
        "uninstall": _uninstall(),
        "namespace": _namespace(),
    }
    whole = _group("The values of an installation of Trimtab.", **found)
    whole["properties"]["global"] = {"type": "object"}
    # Helm takes a chart whose condition is false out before it checks values: only true ever gets here.
    whole["properties"]["enabled"] = {"const": True}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values", **whole}


def values_yaml() -> str:
    """Every value with its default, described."""
    return "\n".join(_written(schema(), depth=0)) + "\n"


def _mode() -> Schema:
    return _text(
        "What changes pods: `webhook`, or `policies` that the API server evaluates itself (`trimtab policies compile`, "
        "from Kubernetes 1.36; the chart does not apply them), or `both`. With `policies` no webhook is registered for "
        "pods. With `vpa` only the recommender is installed, for VPAs that name it, even if it is not `enabled`.",
        DEFAULTS.mode,
        enum=["webhook", "policies", "both", VPA_MODE],
    )


def _image() -> Schema:
    repository, _, _ = DEFAULTS.image.rpartition(":")
    return _group(
        "The image of every process.",
        repository=_text("The repository of the image, without a tag.", repository, minLength=1),
        tag=_text("Empty: the version of the chart's application.", ""),
        digest=_text(
            "sha256:…; it precedes the tag, so that every node runs the same image.",
            "",
            pattern="^(sha256:[0-9a-f]{64})?$",
        ),
        pullPolicy=_text("Empty: Kubernetes' default.", "", enum=["", "Always", "IfNotPresent", "Never"]),
        pullSecrets=_any("array", "Pull Secrets in Trimtab's namespace: `[{name: …}]`.", [], items=_OBJECT),
    )


def _process(name: str) -> Schema:
    pod = _deployment(name)["spec"]
    [container] = pod["template"]["spec"]["containers"]
    switch = {} if name == "webhook" else {"enabled": _any("boolean", "Whether to install this process.", True)}
    return _group(
        f"`trimtab {name}`.",
        **switch,
        replicas=_whole(_REPLICAS.get(name, _ONE_LEADS), pod["replicas"], minimum=0, maximum=20),
        settings=_settings(name),
        resources=_resources(container["resources"]),
        maxUnavailable=_whole("The maxUnavailable of its PodDisruptionBudget.", 1, minimum=0, maximum=20),
        spread=_text(
            "What the scheduler does if it cannot spread the replicas over nodes and zones.",
            "ScheduleAnyway",
            enum=["ScheduleAnyway", "DoNotSchedule"],
        ),
        priorityClassName=_text("The PriorityClass of its pods. Empty: the cluster's default.", ""),
        nodeSelector=_any("object", "The node selector of its pods.", {}, additionalProperties={"type": "string"}),
        tolerations=_any("array", "The tolerations of its pods.", [], items=_OBJECT),
        affinity=_any("object", "The affinity of its pods, in addition to the spread over nodes and zones.", {}),
        podAnnotations=_any("object", "Annotations of its pods.", {}, additionalProperties={"type": "string"}),
        podLabels=_any(
            "object", "Labels of its pods, in addition to Trimtab's own.", {}, additionalProperties={"type": "string"}
        ),
        serviceAccount=_group(
            "Its service account.",
            annotations=_any(
                "object",
                "Annotations of the service account: a cloud identity that may read a managed Prometheus.",
                {},
                additionalProperties={"type": "string"},
            ),
        ),
        extraEnv=_any(
            "array",
            "More environment variables, as in a container: a password from a Secret. Trimtab's own "
            "settings belong into `settings`.",
            [],
            items=_EXTRA_VARIABLE,
        ),
        extraVolumes=_any("array", "More volumes of its pods.", [], items=_OBJECT),
        extraVolumeMounts=_any("array", "Where its container mounts them.", [], items=_OBJECT),
    )


_EXTRA_VARIABLE: Schema = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "not": {"pattern": "^TRIMTAB_"}}},
}
_ONE_LEADS = "One replica works, the other waits for its Lease."
_REPLICAS = {
    "webhook": "One replica serves thousands of reviews per second; two survive the loss of a node.",
    METRICS_API.name: "Every replica scrapes every pod and answers every request; two survive the loss of a node.",
}


def _deployment(name: str) -> Manifest:
    [found] = [
        item
        for item in render_manifests(DEFAULTS)
        if (item["kind"], item["metadata"]["name"]) == ("Deployment", account_name(name))
    ]
    return found


def _only_webhook() -> dict[str, Schema]:
    return {
        "certManager": _any(
            "boolean",
            "Let cert-manager issue the certificate and write the caBundle. False: the replicas do both.",
            DEFAULTS.cert_manager,
        ),
        "timeoutSeconds": _whole(
            "Seconds for which an API server waits before it admits a pod unchanged; 2 or 3.",
            DEFAULTS.timeout,
            minimum=1,
            maximum=10,
        ),
        "servicePort": _whole("The port of the Service.", DEFAULTS.service_port, minimum=1, maximum=65535),
    }


def _only_compactor() -> dict[str, Schema]:
    described = (
        "Namespaces in which the compactor may scale Deployments: a workload of one replica gets a second one while "
        "its pod moves, if the pool allows it. Empty: such pods stay."
    )
    item = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
    resizes = (
        "Whether the compactor may resize running pods, as policies with `running: resize` say (from Kubernetes 1.33)."
    )
    return {
        "scaleNamespaces": _any("array", described, [], items=item, uniqueItems=True),
        "resize": _any("boolean", resizes, DEFAULTS.resize),
    }


def _autoscaler() -> Schema:
    return _group(
        "The status of the cluster autoscaler. The compactor and the webhook may read the ConfigMap of this name.",
        namespace=_text("The autoscaler's own flag `--namespace`.", DEFAULTS.autoscaler_namespace, pattern=_NAME),
        status=_text("The autoscaler's flag `--status-config-map-name`.", DEFAULTS.autoscaler_status, pattern=_NAME),
    )


def _settings(name: str) -> Schema:
    given = find_installed_process(name).environment(DEFAULTS)
    kind: Any = SETTINGS[name]
    names = [variable_name(kind.process, field.name) for field in fields(kind)]
    found = _any("object", f"Settings by variable, as strings: docs/reference/settings.md, `trimtab {name}`.", {})
    open_ = [each for each in names if each not in given or each == "TRIMTAB_LOG_FORMAT"]
    return {**found, "additionalProperties": False, "properties": {each: {"type": "string"} for each in open_}}


def _resources(default: Manifest) -> Schema:
    amount = {"type": ["string", "integer"], "pattern": "^[0-9.]+([a-zA-Z]+)?$"}
    amounts = {"type": "object", "additionalProperties": amount}
    found = _any(
        "object",
        "Measured requests and limits (docs/explanation/what-our-processes-need.md). There is no CPU limit, because a "
        "throttled process answers late.",
        default,
    )
    return {**found, "additionalProperties": False, "properties": {"requests": amounts, "limits": amounts}}


def _network() -> Schema:
    egress = _group(
        "The egress rules.",
        enabled=_any(
            "boolean",
            "Whether to restrict egress. DNS and the ports below stay open to any address, "
            "because the addresses of API servers are not known.",
            False,
        ),
        apiServerPorts=_any(
            "array",
            "The ports of API servers: the Service's port, and the port behind it.",
            [443, 6443],
            items={"type": "integer", "minimum": 1, "maximum": 65535},
            minItems=1,
        ),
        more=_any(
            "array",
            "More egress rules, as in a NetworkPolicy: Prometheus, if the recommender reads it.",
            [],
            items=_OBJECT,
        ),
    )
    return _group(
        "A NetworkPolicy for each process, which allows connections only to its one port.",
        enabled=_any("boolean", "Whether to install them.", True),
        metricsFrom=_any(
            "array",
            "The clients that may scrape the processes behind a Lease, as peers of a "
            "NetworkPolicy. Empty: any client. If your network plugin applies the policy to kubelets, "
            "add the nodes' addresses.",
            [],
            items=_OBJECT,
        ),
        egress=egress,
    )


def _monitors() -> Schema:
    return _group(
        "A PodMonitor for each process, for the Prometheus operator.",
        enabled=_any("boolean", "It needs the operator's CustomResourceDefinitions.", False),
        interval=_text("The scrape interval.", INTERVAL, pattern="^[0-9]+(ms|s|m)$"),
        labels=_labels("The labels by which your Prometheus selects monitors.", {}),
    )


def _rules() -> Schema:
    return _group(
        "A PrometheusRule with the recording rules for the dashboards, and alerts with their runbooks.",
        enabled=_any("boolean", "It needs the operator's CustomResourceDefinitions.", False),
        labels=_labels("The labels by which your Prometheus selects rules.", {}),
        runbooks=_text(
            "The address of the runbooks; each alert's `runbook_url` adds # and its name. `make docs` builds the page "
            "as how-to/runbooks.html, so that you can publish it: "
            "https://pages.example.com/trimtab/how-to/runbooks.html.",
            RUNBOOKS,
            pattern="^[A-Za-z0-9][A-Za-z0-9._~:/?&=%@+-]*$",
        ),
    )


def _dashboards() -> Schema:
    return _group(
        "Grafana dashboards as ConfigMaps, for Grafana's sidecar.",
        enabled=_any("boolean", "Whether to install them.", False),
        labels=_labels("The labels that the sidecar selects.", dict(GRAFANA)),
    )


def _labels(description: str, default: dict[str, str]) -> Schema:
    return _any("object", description, default, additionalProperties={"type": "string"})


def _uninstall() -> Schema:
    return _group(
        "What `helm uninstall` does first.",
        hook=_any(
            "boolean",
            "A Job reverts what the processes wrote: it ends the calls of API servers, uncordons "
            "nodes, removes annotations and taints, and deletes Leases and records. If false, run "
            "`trimtab install --remove --traces` first.",
            True,
        ),
        keepUsage=_any("boolean", "Keep the recommender's checkpoints: two weeks of usage.", False),
        nodeSelector=_any("object", "The node selector of the Job.", {}, additionalProperties={"type": "string"}),
        tolerations=_any("array", "The tolerations of its pods.", [], items=_OBJECT),
    )


def _capture() -> Schema:
    duration = "^[0-9]{1,6}[smhdw]$"
    [container] = _cron_job()["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return _group(
        "A CronJob that captures the cluster for `trimtab replay` (docs/how-to/before-you-let-it-act.md).",
        claim=_text(
            "A PersistentVolumeClaim of this namespace, on which it writes. Empty: there is no CronJob.",
            DEFAULTS.capture_claim,
        ),
        every=_text("The time between two captures.", DEFAULTS.capture_every, pattern=duration),
        keep=_text("How long its files stay.", DEFAULTS.capture_keep, pattern=duration),
        resources=_resources(container["resources"]),
        nodeSelector=_any("object", "The node selector of its pods.", {}, additionalProperties={"type": "string"}),
        tolerations=_any("array", "The tolerations of its pods.", [], items=_OBJECT),
        serviceAccount=_group(
            "Its service account, which may only list.",
            annotations=_any("object", "Its annotations.", {}, additionalProperties={"type": "string"}),
        ),
    )


def _cron_job() -> Manifest:
    values = replace(DEFAULTS, capture_claim="captures")
    [found] = [item for item in render_manifests(values) if item["kind"] == "CronJob"]
    return found


def _policies() -> Schema:
    spec = {**spec_schema(), "description": "The policy's spec."}
    found = _any(
        "object",
        "PodPolicies: name → spec (docs/reference/policy-language.md). One that the "
        "watchdog set to `mode: warn` keeps it: docs/how-to/watch-running-pods.md.",
        {},
    )
    return {**found, "propertyNames": {"pattern": _NAME, "maxLength": 63}, "additionalProperties": spec}


def _pools() -> Schema:
    found = _any(
        "object",
        "Pools: name → settings (docs/reference/pool.md). No node is drained until a pool has `mode: act`.",
        {},
    )
    return {
        **found,
        "propertyNames": {"pattern": _NAME, "maxLength": 50},
        "additionalProperties": {**schema_of(pool_settings()), "type": "object"},
    }


def _namespace() -> Schema:
    said = "Use it for `helm template` into Git: Helm cannot create the namespace of its own release."
    return _group(
        "The namespace of Trimtab, with the labels of the restricted Pod Security level.",
        create=_any("boolean", said, False),
    )


def _group(description: str, **properties: Schema) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": False, "properties": properties}


def _text(description: str, default: str, **more: Any) -> Schema:
    return _any("string", description, default, **more)


def _whole(description: str, default: int, **more: Any) -> Schema:
    return _any("integer", description, default, **more)


def _any(kind: str, description: str, default: Any, **more: Any) -> Schema:
    return {"type": kind, "description": description, "default": default, **more}


def _written(group: Schema, depth: int) -> Iterator[str]:
    for name, part in group["properties"].items():
        if "description" not in part:
            continue
        if not depth:
            yield ""
        yield from textwrap.wrap(
            part["description"], 100, initial_indent=" " * depth + "# ", subsequent_indent=" " * depth + "# "
        )
        if "default" in part:
            dumped = yaml.safe_dump({name: part["default"]}, sort_keys=False)
            yield textwrap.indent(dumped.rstrip(), " " * depth)
        else:
            yield f"{' ' * depth}{name}:"
            yield from _written(part, depth + 2)
