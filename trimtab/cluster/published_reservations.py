"""The reservations for kubelets and container runtimes that the recommender publishes.

They are in one ConfigMap, `trimtab-reservations`, with the label `trimtab.dev/reservations`.
"""

import msgspec

from trimtab.cluster.bounded_decode import BytesRefused, decode_json
from trimtab.cluster.reason import Unreadable

RESERVATIONS_LABEL = "trimtab.dev/reservations"
RESERVATIONS_KEY = "reservations.json"


class PublishedReservation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The recommended reservation of one pool with one container runtime."""

    pool: str
    runtime: str
    millicores: int
    memory_bytes: int
    base_millicores: float | None = None
    """The part of the cpu reservation that does not depend on the number of pods, or None if no line could be fitted to
    the measurements."""
    millicores_per_pod: float | None = None
    base_bytes: float | None = None
    bytes_per_pod: float | None = None
    nodes: int = 0
    days: float = 0.0
    """The number of days that were measured."""
    since: int = 0
    """When this recommendation was first published with its present value, in seconds since 1970."""


class PublishedReservations(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of the ConfigMap with the published reservations."""

    api_version: str = "trimtab.dev/v1alpha1"
    kind: str = "NodeReservations"
    pools: tuple[PublishedReservation, ...] = ()


def decode_reservations(text: str | bytes) -> tuple[PublishedReservation, ...] | Unreadable:
    """Returns the reservations in a ConfigMap's text; Unreadable if the text is not in the form that the recommender
    writes."""
    try:
        return decode_json(text, PublishedReservations).pools
    except (msgspec.DecodeError, BytesRefused, RecursionError) as error:
        return Unreadable(RESERVATIONS_KEY, str(error))
