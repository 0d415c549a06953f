"""The manifests of `trimtab metrics-api`, which is installed on request: a cluster has only one provider of custom
metrics.

The APIService is applied last and removed first. While it exists and no process serves it, discovery of the whole
cluster fails, and so does the deletion of every namespace.
"""

from collections.abc import Iterator

from trimtab.cluster.processes import METRICS_API
from trimtab.installation.access_rule import FOR_CERTIFICATE, WATCH, Rule
from trimtab.installation.admission_policies import render_write_policies
from trimtab.installation.deployments import (
    render_certificate,
    render_deployment,
    render_guards,
    render_probe,
    render_variables,
)
from trimtab.installation.installed_process import InstalledProcess
from trimtab.installation.names import INJECT, InstallValues, Manifest, build_manifest, component_labels
from trimtab.installation.rbac import render_roles
from trimtab.installation.write_policy import CREATE, UnrestrictedWrite, restrict_ca_bundle, restrict_secrets
from trimtab.kube import objects
from trimtab.kube.client import Client
from trimtab.kube.listing import iter_pages
from trimtab.kube.resources import LIST_SOURCES
from trimtab.metricsapi.api_request import API_SERVICE_NAME, GROUP, VERSION
from trimtab.metricsapi.request_header import CONFIG_NAMESPACE
from trimtab.runtime.environment import variable_name

_COMPONENT, NAME = METRICS_API.name, METRICS_API.account
CERTIFICATE_SECRET = f"{NAME}-tls"
READER_BINDING = f"{NAME}-authentication-reader"
"""The name of a RoleBinding in kube-system.

Kustomize finds it by this name to move it to another namespace and back, so no other binding of Trimtab has this name.
"""
RULES = "trimtab-metrics"
SCRAPE_SECRET = "trimtab-metrics-scrape"  # noqa: S105  a name
"""The Secret with the tokens and certificate authorities that metric rules name. Users create it."""
_RBAC = "rbac.authorization.k8s.io/v1"
_RUN = "/var/run/trimtab"
GRACE_SECONDS = 40


def metrics_api_environment(values: InstallValues) -> dict[str, str]:
    """Returns the settings of `trimtab metrics-api` that differ from their defaults; the defaults are for a local
    run."""
    own = {
        "listen": f"0.0.0.0:{values.port}",
        "rules_config_map": RULES,
        "certs_folder": f"{_RUN}/certs",
        "client_ca_file": f"{_RUN}/aggregation/ca.crt",
        "scrape_files_folder": f"{_RUN}/scrape",
        "service_name": NAME,
        **({} if values.cert_manager else {"certs_secret": CERTIFICATE_SECRET}),
    }
    common = {"TRIMTAB_NAMESPACE": values.namespace, "TRIMTAB_LOG_FORMAT": "json"}
    return {**{variable_name(_COMPONENT, name): value for name, value in own.items()}, **common}


PROCESS = InstalledProcess(
    name=_COMPONENT,
    cluster_rules=(
        Rule("", ("pods",), WATCH),
        # Whether a user may read a metric. TokenReviews are not needed: API servers name the user.
        Rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
        Rule(
            "apiregistration.k8s.io", ("apiservices",), ("get", "update"), (API_SERVICE_NAME,), is_for_certificate=True
        ),
    ),
    namespace_rules=(
        Rule("", ("configmaps",), ("get",), (RULES,)),
        Rule("", ("secrets",), ("get", "update"), (CERTIFICATE_SECRET,), is_for_certificate=True),
    ),
    conditions={
        ("update", "apiservices"): "the certificate has a new authority",
        ("update", "secrets"): "a certificate is due for renewal",
    },
    cluster_purposes={
        "pods": "to read the pods whose metrics are served",
        "subjectaccessreviews": "to check whether a user may read a metric",
        "apiservices": "to write the caBundle with which API servers trust the metrics API",
    },
    namespace_purposes={"configmaps": "to read the rules of the metrics"},
    object_purposes={CERTIFICATE_SECRET: FOR_CERTIFICATE},
    write_policies=(
        restrict_ca_bundle(
            _COMPONENT,
            group="apiregistration.k8s.io",
            kinds=("apiservices",),
            name=API_SERVICE_NAME,
            field=("spec", "caBundle"),
            what="change the caBundle of an APIService",
        ),
        restrict_secrets(_COMPONENT, CERTIFICATE_SECRET),
    ),
    unrestricted_writes=(
        UnrestrictedWrite(
            process=_COMPONENT,
            group="authorization.k8s.io",
            resource="subjectaccessreviews",
            operation=CREATE,
            reason="the API server answers the review, and stores nothing",
        ),
    ),
    reads_request_headers=True,
    environment=metrics_api_environment,
)


def render_metrics_api(values: InstallValues) -> Iterator[Manifest]:
    """Yields all manifests of `trimtab metrics-api`, the APIService last."""
    yield build_manifest("v1", "ServiceAccount", NAME, values, component=_COMPONENT)
    yield from render_roles(PROCESS, values)
    yield _render_reader_binding(values)
    yield from render_write_policies(PROCESS.write_policies, values)
    yield from render_guards(METRICS_API, values)
    if values.cert_manager:
        yield from render_certificate(values, NAME, CERTIFICATE_SECRET, _COMPONENT)
    else:
        # Without data: the replicas fill it, and another server-side apply leaves their fields alone.
        yield build_manifest("v1", "Secret", CERTIFICATE_SECRET, values, component=_COMPONENT, type="Opaque")
    port = {"name": "https", "port": values.service_port, "targetPort": "https", "protocol": "TCP"}
    service = {"selector": component_labels(_COMPONENT), "ports": [port]}
    yield build_manifest("v1", "Service", NAME, values, component=_COMPONENT, spec=service)
    yield _render_deployment(values)
    yield render_api_service(values)


def render_api_service(values: InstallValues) -> Manifest:
    """Returns the APIService, without its caBundle, which the replicas or cert-manager write."""
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 200,
        "service": {"name": NAME, "namespace": values.namespace, "port": values.service_port},
    }
    annotations = {INJECT: f"{values.namespace}/{NAME}"} if values.cert_manager else None
    return build_manifest(
        "apiregistration.k8s.io/v1",
        "APIService",
        API_SERVICE_NAME,
        component=_COMPONENT,
        annotations=annotations,
        spec=spec,
    )


def _render_reader_binding(values: InstallValues) -> Manifest:
    """Returns the RoleBinding to Kubernetes' own role, which may only read which request headers name the user."""
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": values.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "extension-apiserver-authentication-reader"}
    binding = build_manifest(
        _RBAC, "RoleBinding", READER_BINDING, component=_COMPONENT, roleRef=ref, subjects=[subject]
    )
    return {**binding, "metadata": {**binding["metadata"], "namespace": CONFIG_NAMESPACE}}


def _render_deployment(values: InstallValues) -> Manifest:
    memory = {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    own = {"secret": {"secretName": CERTIFICATE_SECRET, "defaultMode": 0o440}}
    # An empty folder until the Secret is created, so that the Deployment needs no change for it.
    scrape = {"secret": {"secretName": SCRAPE_SECRET, "defaultMode": 0o440, "optional": True}}
    volumes = [
        {"name": "certs", **(own if values.cert_manager else memory)},
        {"name": "aggregation", **memory},
        {"name": "scrape", **scrape},
    ]
    spec = {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "containers": [_render_container(values)],
        "volumes": volumes,
    }
    return render_deployment(_COMPONENT, values, replicas=2, spec=spec)


def _render_container(values: InstallValues) -> Manifest:
    return {
        "name": _COMPONENT,
        "image": values.image,
        "args": [_COMPONENT],
        "env": render_variables(metrics_api_environment(values)),
        "ports": [{"name": "https", "containerPort": values.port, "protocol": "TCP"}],
        "readinessProbe": render_probe("/readyz", "https", "HTTPS", periodSeconds=2, failureThreshold=2),
        "livenessProbe": render_probe("/healthz", "https", "HTTPS", periodSeconds=10, failureThreshold=6),
        # A first certificate may have to be issued, and written to the APIService, before the server listens.
        "startupProbe": render_probe("/healthz", "https", "HTTPS", periodSeconds=2, failureThreshold=60),
        "resources": {"requests": {"cpu": "50m", "memory": "192Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [
            {"name": "certs", "mountPath": f"{_RUN}/certs", **({"readOnly": True} if values.cert_manager else {})},
            {"name": "aggregation", "mountPath": f"{_RUN}/aggregation"},
            {"name": "scrape", "mountPath": f"{_RUN}/scrape", "readOnly": True},
        ],
    }


def find_other_providers(client: Client, namespace: str) -> tuple[str, ...]:
    """Returns the other providers of custom metrics, as text. Raises any KubeFault.

    Two providers of one API group hide each other's metrics: an HPA asks only the preferred version.
    """
    import msgspec

    providers = []
    for page in iter_pages(client, LIST_SOURCES["APIService"]):
        for raw in page.items or ():
            document = msgspec.json.decode(raw)
            spec = document.get("spec") or {}
            service = spec.get("service") or {}
            is_ours = (service.get("namespace"), service.get("name")) == (namespace, NAME)
            if spec.get("group") == GROUP and not is_ours:
                place = f"{service.get('namespace')}/{service.get('name')}" if service else "no Service"
                providers.append(f"{document['metadata']['name']} ({place})")
    return tuple(sorted(providers))


def read_own_api_service(client: Client, namespace: str) -> Manifest | None:
    """Returns the APIService of custom metrics if it names a Service in this namespace, else None. Raises any
    KubeFault."""
    document = objects.get_plain(client, "APIService", API_SERVICE_NAME)
    service = ((document or {}).get("spec") or {}).get("service") or {}
    return document if (service.get("namespace"), service.get("name")) == (namespace, NAME) else None
