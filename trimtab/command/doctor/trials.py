"""Objects that are created and not stored (`dryRun=All`), to see how the API server answers to them."""

from typing import Any

from trimtab.admission.answer import ASKED
from trimtab.policy.document import API_VERSION, KIND
from trimtab.policy.subject import OPT_OUT

NO_SUCH_CLASS = "trimtab-doctor-asks"
"""A RuntimeClass that there is not."""


def asking() -> dict[str, Any]:
    """A pod that the webhook answers with a warning: it was asked, and heard."""
    return _pod({"annotations": {ASKED: "doctor"}}, {})


def of_no_class() -> dict[str, Any]:
    """A pod that RuntimeClass admission refuses, where it is on; kept from us, so that it alone decides."""
    return _pod({"labels": {OPT_OUT: "true"}}, {"runtimeClassName": NO_SUCH_CLASS})


def senseless() -> dict[str, Any]:
    """A PodPolicy that the schema lets through and we refuse."""
    meta = {"name": "trimtab-doctor-asks"}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": {"actions": {}, "areYouThere": True}}


def _pod(meta: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Under the restricted pod security standard, and asking for what a quota may demand."""
    amounts = {"cpu": "1m", "memory": "1Mi"}
    container = {
        "name": "asks", "image": "trimtab.invalid/doctor", "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }  # fmt: skip
    secure = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "trimtab-doctor-", **meta},
        "spec": {
            "automountServiceAccountToken": False, "securityContext": secure, "containers": [container], **spec,
        },
    }  # fmt: skip
