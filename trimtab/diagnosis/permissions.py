"""The permissions that the processes' accounts need: exactly those that `trimtab install` grants."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.cluster.cluster_autoscaler import STATUS_NAME as AUTOSCALER_STATUS
from trimtab.cluster.cluster_autoscaler import split_status_names
from trimtab.cluster.processes import account_name
from trimtab.installation.access_rule import Rule, granted_rules
from trimtab.installation.installed_processes import INSTALLED_PROCESSES, find_installed_process
from trimtab.installation.purposes import purpose_of
from trimtab.installation.rbac import RESIZING, SCALING
from trimtab.installation.vpa_status_access import RULES as VPA_STATUS_RULES
from trimtab.metricsapi.request_header import CONFIG_NAME, CONFIG_NAMESPACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The permission to use one verb on one resource."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    """The namespace of the resource; empty for the whole cluster."""

    is_other_namespace: bool = False
    """Whether the namespace is not Trimtab's own; the text then includes it."""
    purpose: str = field(default="", compare=False)
    """What the account needs this permission for."""

    @property
    def description(self) -> str:
        """The permission and its purpose, as text."""
        return f"{self} ({self.purpose})" if self.purpose else str(self)

    def __str__(self) -> str:
        what = "/".join(part for part in (self.resource, self.subresource) if part)
        which = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.is_other_namespace else ""
        return f"{self.verb} {what}{f'.{self.group}' if self.group else ''}{which}{where}"

    def to_access_review(self, user: str, namespace: str) -> dict[str, Any]:
        """Returns a SubjectAccessReview of this permission for the service account `user` of this namespace."""
        attributes = {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "name": self.name,
            "namespace": self.namespace,
        }
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        spec = {
            "user": f"system:serviceaccount:{namespace}:{user}",
            "groups": groups,
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        }
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


ReviewAccess = Callable[[Sequence[Mapping[str, Any]]], list[bool]]
"""A function that returns for each SubjectAccessReview whether the access is allowed. Raises KubeFault."""


def missing_permissions(
    permissions: Sequence[Permission], process: str, namespace: str, review_access: ReviewAccess
) -> tuple[str, ...]:
    """Returns the permissions that the process's account lacks, each as text with its purpose."""
    user = account_name(process)
    verdicts = review_access([permission.to_access_review(user, namespace) for permission in permissions])
    return tuple(
        permission.description for permission, verdict in zip(permissions, verdicts, strict=True) if not verdict
    )


_HEADER_PERMISSIONS = (
    Permission(
        verb="get",
        group="",
        resource="configmaps",
        name=CONFIG_NAME,
        namespace=CONFIG_NAMESPACE,
        is_other_namespace=True,
        purpose="how API servers name the users of a request",
    ),
)
"""The permission to read the ConfigMap that says in which headers API servers name the user of a request.

A role of Kubernetes itself grants it; `trimtab install` binds the account to that role."""


def needed_permissions(
    process: str,
    namespace: str,
    *,
    cert_manager: bool,
    scale_namespaces: Collection[str] = (),
    autoscaler_status: str = AUTOSCALER_STATUS,
    writes_vpa_status: bool = False,
) -> tuple[Permission, ...]:
    """Returns the permissions that the process's account needs.

    If cert-manager writes the certificate and the caBundles, the webhook and the metrics API need fewer.
    `autoscaler_status`: the names of the autoscalers' status ConfigMaps, separated by commas. `writes_vpa_status`:
    whether the process is configured to write the status of VPAs.
    """
    installed = find_installed_process(process)
    places = ((installed.cluster_rules, ""), (installed.namespace_rules, namespace))
    rules = ((rule, place) for granted, place in places for rule in granted_rules(granted, cert_manager=cert_manager))
    permissions = dict.fromkeys(permission for rule, place in rules for permission in _split_rule(process, rule, place))
    if writes_vpa_status:
        permissions |= dict.fromkeys(
            permission for rule in VPA_STATUS_RULES for permission in _split_rule(process, rule, "")
        )
    if installed.reads_request_headers:
        permissions |= dict.fromkeys(_HEADER_PERMISSIONS)
    scale_rules = (
        permission
        for place in sorted(scale_namespaces)
        for rule in SCALING
        for permission in _split_rule(process, rule, place)
    )
    scale_permissions = (
        [replace(permission, is_other_namespace=True) for permission in scale_rules] if installed.may_scale else []
    )
    return tuple(
        replace(permission, name=name)
        for permission in (*permissions, *scale_permissions)
        for name in (
            split_status_names(autoscaler_status) if permission.name == AUTOSCALER_STATUS else (permission.name,)
        )
    )


def resize_permissions() -> tuple[Permission, ...]:
    """Returns the permissions that the compactor's account needs if a policy has `running: resize`."""
    return tuple(permission for rule in RESIZING for permission in _split_rule(resizing_process(), rule, ""))


def resizing_process() -> str:
    """Returns the name of the process that resizes running pods."""
    return next(process.name for process in INSTALLED_PROCESSES if process.may_resize)


def _split_rule(process: str, rule: Rule, namespace: str) -> Iterator[Permission]:
    for resource in rule.resources:
        kind, _, sub = resource.partition("/")
        for verb in rule.verbs:
            for name in rule.names or ("",):
                purpose = purpose_of(
                    process, resource, group=rule.group, name=name, own=bool(namespace) and rule not in SCALING
                )
                yield Permission(
                    verb=verb,
                    group=rule.group,
                    resource=kind,
                    subresource=sub,
                    name=name,
                    namespace=namespace,
                    purpose=purpose,
                )
