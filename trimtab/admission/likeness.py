"""Which reviews are of the same pod, but for what is drawn anew for each?

The pods that one ReplicaSet, DaemonSet or Job makes differ in nothing but the name of their token volume: the
ServiceAccount plugin calls it `kube-api-access-` and five drawn characters, and puts it in before we are called
(plugin/pkg/admission/serviceaccount). Our shapes read that name once at the most, and no decision asks for it.
"""

import re

import msgspec

from trimtab.admission.record import Finding
from trimtab.cluster.api.pod import Pod, Volume

_TOKEN = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')
_START = b'"kube-api-access-'
_LENGTH = len(_START) + 6
_NOBODYS = b"\xff"
"""No JSON holds this byte: it is no UTF-8."""
_PLACE = _START + _NOBODYS * 5 + b'"'
"""As long as what it stands for, so that nothing has to move."""


def likeness(raw: bytes) -> tuple[bytes, bytes] | None:
    """The pod's bytes with a mark wherever the token volume's name stands, and that name (empty where there is none).

    No two bodies give the same pair. None: bytes that nothing may be concluded from.
    """
    if _NOBODYS in raw:
        return None
    at = raw.rfind(_START)
    name = raw[at : at + _LENGTH] if at >= 0 else b""
    if not _TOKEN.fullmatch(name):
        return raw, b""
    return raw.replace(name, _PLACE), name


def stands_for_its_like(pod: Pod, name: bytes, finding: Finding) -> bool:
    """Does what we read of the pod hold `name` (with its quotes) only where no decision looks?

    That is: once, as the name of a volume from a source that we do not read; and nothing of it is in what was found.
    """
    if not name:
        return True
    plain = name[1:-1]
    if plain in finding.patch or plain in msgspec.json.encode(finding.warnings):
        return False
    found = msgspec.json.encode(pod).count(plain)
    nameless = Volume(name=plain.decode())
    return found == sum(volume == nameless for volume in pod.spec.volumes) <= 1
