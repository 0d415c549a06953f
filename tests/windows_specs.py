"""Parts of pod specs that say that a pod runs on Windows, and others that do not. The API server accepts
all of them."""

from typing import Any


def required(*terms: tuple[str, str, list[str]]) -> dict[str, Any]:
    """Required node affinity with one expression in each term."""
    items = [{"matchExpressions": [{"key": key, "operator": how, "values": list_of}]} for key, how, list_of in terms]
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": items}}
    return {"affinity": {"nodeAffinity": node_affinity}}


OS, OLD_OS = "kubernetes.io/os", "beta.kubernetes.io/os"
HOST_PROCESS = {
    "hostNetwork": True,
    "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}},
}
ON_WINDOWS: dict[str, dict[str, Any]] = {
    "os": {"os": {"name": "windows"}},
    "selector": {"nodeSelector": {OS: "windows"}},
    "old-selector": {"nodeSelector": {OLD_OS: "windows"}},
    "affinity": required((OS, "In", ["windows"])),
    "old-affinity": required((OLD_OS, "In", ["windows"])),
    "not-linux": required((OS, "NotIn", ["linux"])),
    "both-terms": required((OS, "In", ["windows"]), (OLD_OS, "In", ["windows"])),
    "host-process": HOST_PROCESS,
    "user": {"securityContext": {"windowsOptions": {"runAsUserName": "ContainerUser"}}},
    "account": {"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "web"}}},
}
NOT_ON_WINDOWS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "os": {"os": {"name": "linux"}, "nodeSelector": {OS: "windows"}},
    "selector": {"nodeSelector": {OS: "linux"}},
    "one-term": required((OS, "In", ["windows"]), ("zone", "In", ["a"])),
    "both-systems": required((OS, "In", ["windows", "linux"])),
    "not-windows": required((OS, "NotIn", ["windows"])),
    "other-label": {"nodeSelector": {"system": "windows"}},
    "no-host-process": {"securityContext": {"windowsOptions": {"hostProcess": False}}},
    "selector-before-options": {
        "nodeSelector": {OS: "linux"},
        "securityContext": {"windowsOptions": {"runAsUserName": "ContainerUser"}},
    },
}
