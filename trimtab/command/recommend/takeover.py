"""Can the VPA's webhook of a live cluster act? P5 is proposed only where it can."""

from dataclasses import replace
from typing import Any

from trimtab.command import live
from trimtab.command.main import Failed
from trimtab.policy import vpa_webhook

CONFIGURATION, SLICE = "MutatingWebhookConfiguration", "EndpointSlice"
DOWN = "The VPA's webhook cannot act (no trusted configuration with a ready endpoint): P95 instead of P5."
HIDDEN = "Whether the VPA's webhook can act may not be looked at with these rights: P95 instead of P5."


def acts(cluster: live.Asked) -> tuple[bool, list[str]]:
    """Whether it can; a note where it cannot, or where it may not be looked at: then P95 is the safe number. Raises
    Failed."""
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault, NotAllowed

    try:
        client = connect(cluster.kubeconfig, cluster.context)
        try:
            able = _asked(client)
        finally:
            client.close()
    except NotAllowed:
        return False, [HIDDEN]
    except KubeFault as error:
        raise Failed(str(error)) from None
    return able, [] if able else [DOWN]


def _asked(client: Any) -> bool:
    from trimtab.kube.kinds import PLACES
    from trimtab.kube.listing import listed

    called = {key: vpa_webhook.called(found) for key, found in listed(client, PLACES[CONFIGURATION])}
    sources = [replace(PLACES[SLICE], namespace=namespace, labels=f"{vpa_webhook.SERVICE_LABEL}={name}")
               for namespace, name in vpa_webhook.services(called)]  # fmt: skip
    slices = {key: vpa_webhook.endpoints(found) for source in sources for key, found in listed(client, source)}
    return vpa_webhook.acts(called, slices)
