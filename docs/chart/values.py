"""What can be chosen about the chart. One schema holds descriptions and defaults; values.yaml is written from it."""

import textwrap
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import yaml

from deploy.observe.rules import RUNBOOKS
from docs.chart.observed import GRAFANA, INTERVAL
from trimtab.cli.install import deployments
from trimtab.cli.install.manifests import manifests
from trimtab.cli.install.names import PROCESSES, InstallValues, Manifest, account
from trimtab.cluster.pool_schema import schema as pool_schema
from trimtab.compactor.settings import Settings as CompactorSettings
from trimtab.policy.schema import spec_schema
from trimtab.recommender.settings import Settings as RecommenderSettings
from trimtab.runtime.environment import variable
from trimtab.runtime.settings import Settings
from trimtab.watchdog.settings import Settings as WatchdogSettings

Schema = dict[str, Any]

SETTINGS: dict[str, type] = {
    "webhook": Settings, "watchdog": WatchdogSettings, "compactor": CompactorSettings,
    "recommender": RecommenderSettings,
}  # fmt: skip
DEFAULTS = InstallValues()
_OBJECT: Schema = {"type": "object"}
_NAME = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


def schema() -> Schema:
    """values.schema.json. Helm refuses what it does not know, with the place."""
    own = {name: _process(name) for name in PROCESSES}
    own["webhook"]["properties"] = {**_only_webhook(), **own["webhook"]["properties"]}
    own["compactor"]["properties"] = {**own["compactor"]["properties"], "autoscaler": _autoscaler()}
    own["compactor"]["properties"] |= _only_compactor()
    found = {"image": _image(), **own, "networkPolicy": _network(), "monitors": _monitors(), "rules": _rules(),
             "dashboards": _dashboards(), "policies": _policies(), "pools": _pools(), "uninstall": _uninstall(),
             "namespace": _namespace()}  # fmt: skip
    whole = _group("What can be chosen about an installation of Trimtab.", **found)
    whole["properties"]["global"] = {"type": "object"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values", **whole}


def values_yaml() -> str:
    """Every value with its default, described."""
    return "\n".join(_written(schema(), depth=0)) + "\n"


def _image() -> Schema:
    repository, _, _ = DEFAULTS.image.rpartition(":")
    return _group(
        "What every process runs.",
        repository=_text("Where the nodes pull it from, without a tag.", repository, minLength=1),
        tag=_text("Empty: the version of the chart's application.", ""),
        digest=_text(
            "sha256:…, before any tag: the very same image everywhere.", "", pattern="^(sha256:[0-9a-f]{64})?$"
        ),
        pullPolicy=_text("Empty: as Kubernetes does by itself.", "", enum=["", "Always", "IfNotPresent", "Never"]),
        pullSecrets=_any("array", "Secrets of our namespace to pull with: `[{name: …}]`.", [], items=_OBJECT),
    )


def _process(name: str) -> Schema:
    pod = _deployment(name)["spec"]
    [container] = pod["template"]["spec"]["containers"]
    switch = {} if name == "webhook" else {"enabled": _any("boolean", "Whether it is there at all.", True)}
    return _group(
        f"`trimtab {name}`.",
        **switch,
        replicas=_whole(_REPLICAS[name == "webhook"], pod["replicas"], minimum=0, maximum=20),
        settings=_settings(name),
        resources=_resources(container["resources"]),
        maxUnavailable=_whole("Of its pods, while nodes are drained: its disruption budget.", 1, minimum=0, maximum=20),
        spread=_text(
            "What if a pod cannot stand apart from its twins, on another node and in another zone?",
            "ScheduleAnyway",
            enum=["ScheduleAnyway", "DoNotSchedule"],
        ),
        priorityClassName=_text("PriorityClass of its pods; empty: the cluster's default.", ""),
        nodeSelector=_any("object", "Labels that its nodes have.", {}, additionalProperties={"type": "string"}),
        tolerations=_any("array", "Taints it may live with.", [], items=_OBJECT),
        affinity=_any("object", "Beside the spread over nodes and zones, which is always there.", {}),
        podAnnotations=_any("object", "On its pods.", {}, additionalProperties={"type": "string"}),
    )


_REPLICAS = {
    True: "One serves thousands of reviews a second; two survive a node.",
    False: "One works, its twin waits behind a Lease.",
}


def _deployment(name: str) -> Manifest:
    [found] = [
        item for item in manifests(DEFAULTS)
        if (item["kind"], item["metadata"]["name"]) == ("Deployment", account(name))
    ]  # fmt: skip
    return found


def _only_webhook() -> dict[str, Schema]:
    return {
        "certManager": _any("boolean", "cert-manager issues the pair and keeps the caBundle; else the replicas do both "
                            "by themselves.", DEFAULTS.cert_manager),
        "timeoutSeconds": _whole("Seconds an API server waits for us before it lets the pod through unchanged; 2 or 3.",
                                 DEFAULTS.timeout, minimum=1, maximum=10),
        "servicePort": _whole("Port of the Service.", DEFAULTS.service_port, minimum=1, maximum=65535),
    }  # fmt: skip


def _only_compactor() -> dict[str, Schema]:
    described = (
        "Namespaces in which it may scale Deployments: a workload of one replica gets a second one while its pod "
        "moves, where the pool says so. Empty: such pods stay."
    )
    item = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
    return {"scaleNamespaces": _any("array", described, [], items=item, uniqueItems=True)}


def _autoscaler() -> Schema:
    return _group(
        "Where the cluster autoscaler writes its status. Compactor and webhook may read the ConfigMap of this name.",
        namespace=_text("The autoscaler's own flag `--namespace`.", DEFAULTS.autoscaler_namespace, pattern=_NAME),
        status=_text(
            "The autoscaler's flag `--status-config-map-name`.", DEFAULTS.autoscaler_status, pattern=_NAME
        ),
    )  # fmt: skip


def _settings(name: str) -> Schema:
    given = deployments.environment(DEFAULTS) if name == "webhook" else deployments.process_environment(name, DEFAULTS)
    names = [variable(name, field.name) for field in fields(SETTINGS[name])]
    found = _any("object", f"Settings by their variable, as texts: docs/reference/settings.md, `trimtab {name}`.", {})
    open_ = [each for each in names if each not in given or each == "TRIMTAB_LOG_FORMAT"]
    return {**found, "additionalProperties": False, "properties": {each: {"type": "string"} for each in open_}}


def _resources(default: Manifest) -> Schema:
    amount = {"type": ["string", "integer"], "pattern": "^[0-9.]+([a-zA-Z]+)?$"}
    amounts = {"type": "object", "additionalProperties": amount}
    found = _any(
        "object",
        "Requests and limits, measured (docs/explanation/what-our-processes-need.md). No CPU limit: who is throttled "
        "comes late.",
        default,
    )
    return {**found, "additionalProperties": False, "properties": {"requests": amounts, "limits": amounts}}


def _network() -> Schema:
    egress = _group(
        "What they may connect to.",
        enabled=_any("boolean", "Whether anything is forbidden outward. DNS and the ports below stay open, to any "
                     "address: an API server's is nobody's guess.", False),
        apiServerPorts=_any("array", "Where API servers listen: the Service's port, and the one behind it.",
                            [443, 6443], items={"type": "integer", "minimum": 1, "maximum": 65535}, minItems=1),
        more=_any("array", "Further rules, as in a NetworkPolicy: Prometheus, for a recommender that asks it.", [],
                  items=_OBJECT),
    )  # fmt: skip
    return _group(
        "A NetworkPolicy per process: nobody connects but to its one port.",
        enabled=_any("boolean", "Whether they are there.", True),
        metricsFrom=_any("array", "Who may scrape the processes behind a Lease, as peers of a NetworkPolicy; empty: "
                         "anybody. Where kubelets are held to it, too, name the nodes' addresses.", [], items=_OBJECT),
        egress=egress,
    )  # fmt: skip


def _monitors() -> Schema:
    return _group(
        "A PodMonitor per process, for the Prometheus operator.",
        enabled=_any("boolean", "Needs the operator's CustomResourceDefinitions.", False),
        interval=_text("Between two scrapes.", INTERVAL, pattern="^[0-9]+(ms|s|m)$"),
        labels=_labels("What your Prometheus selects monitors by.", {}),
    )


def _rules() -> Schema:
    return _group(
        "Recording rules, which the dashboards ask for, and alerts with their runbooks, as a PrometheusRule.",
        enabled=_any("boolean", "Needs the operator's CustomResourceDefinitions.", False),
        labels=_labels("What your Prometheus selects rules by.", {}),
        runbooks=_text(
            "Where each alert's `runbook_url` leads: this, then # and the alert's name. The page is of these docs; "
            "`make docs` makes how-to/runbooks.html of it, for where you keep such pages: "
            "https://pages.example.com/trimtab/how-to/runbooks.html.",
            RUNBOOKS,
            pattern="^[A-Za-z0-9][A-Za-z0-9._~:/?&=%@+-]*$",
        ),
    )


def _dashboards() -> Schema:
    return _group(
        "Grafana's dashboards as ConfigMaps, for its sidecar.",
        enabled=_any("boolean", "Whether they are there.", False),
        labels=_labels("What the sidecar looks for.", dict(GRAFANA)),
    )


def _labels(description: str, default: dict[str, str]) -> Schema:
    return _any("object", description, default, additionalProperties={"type": "string"})


def _uninstall() -> Schema:
    return _group(
        "What `helm uninstall` does before anything is removed.",
        hook=_any("boolean", "A Job takes back what the processes wrote: calls end, nodes are open again without our "
                  "note or taint, Leases and records go. Else call `trimtab install --remove --traces` before.", True),
        keepUsage=_any("boolean", "Leave the recommender's checkpoints: two weeks of what pods used.", False),
        nodeSelector=_any("object", "Labels that its node has.", {}, additionalProperties={"type": "string"}),
        tolerations=_any("array", "Taints it may live with.", [], items=_OBJECT),
    )  # fmt: skip


def _policies() -> Schema:
    spec = {**spec_schema(), "description": "The policy's spec."}
    found = _any(
        "object",
        "PodPolicies: name → spec (docs/reference/policy-language.md). One that the "
        "watchdog put to `mode: warn` stays so: docs/how-to/watch-running-pods.md.",
        {},
    )
    return {**found, "propertyNames": {"pattern": _NAME, "maxLength": 63}, "additionalProperties": spec}


def _pools() -> Schema:
    found = _any("object", "Pools to compact: name → settings (docs/reference/pool.md); nothing is done before "
                 "`mode: act`.", {})  # fmt: skip
    return {**found, "propertyNames": {"pattern": _NAME, "maxLength": 50}, "additionalProperties": pool_schema()}


def _namespace() -> Schema:
    said = "For `helm template` into Git: Helm itself cannot create the namespace its own record goes to."
    return _group("Ours alone, restricted by its labels.", create=_any("boolean", said, False))


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
        yield from textwrap.wrap(part["description"], 100, initial_indent=" " * depth + "# ",
                                 subsequent_indent=" " * depth + "# ")  # fmt: skip
        if "default" in part:
            dumped = yaml.safe_dump({name: part["default"]}, sort_keys=False)
            yield textwrap.indent(dumped.rstrip(), " " * depth)
        else:
            yield f"{' ' * depth}{name}:"
            yield from _written(part, depth + 2)
