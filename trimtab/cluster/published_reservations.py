"""The reservations for kubelets and container runtimes that the recommender publishes.

They are one ConfigMap, `trimtab-reservations`, with the label `trimtab.dev/reservations`.
"""

import msgspec

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
    """None if there is no line."""
    millicores_per_pod: float | None = None
    base_bytes: float | None = None
    bytes_per_pod: float | None = None
    nodes: int = 0
    days: float = 0.0
    """The time that was measured."""
    since: int = 0
    """When this value was first published, in seconds since 1970."""


class PublishedReservations(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of the ConfigMap."""

    api_version: str = "trimtab.dev/v1alpha1"
    kind: str = "NodeReservations"
    pools: tuple[PublishedReservation, ...] = ()


def decode_reservations(text: str | bytes) -> tuple[PublishedReservation, ...] | Unreadable:
    """Returns the reservations of a ConfigMap's text; Unreadable if the recommender did not write the text."""
    try:
        return msgspec.json.decode(text, type=PublishedReservations).pools
    except msgspec.DecodeError as error:
        return Unreadable(RESERVATIONS_KEY, str(error))
