"""What our recommender keeps in a live cluster: the history it gathered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.cluster.reason import NotYet
from trimtab.command import live
from trimtab.runtime import clock

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.sketch.diary import Diary


def diary(client: Client) -> tuple[Diary, list[str]]:
    """All of it, empty where it does not run; and what of it could not be read."""
    from trimtab.kube.writer import Writer
    from trimtab.policy.facts import OWN_NAMESPACE
    from trimtab.recommender.cabinet import NotNow
    from trimtab.recommender.checkpoints import Checkpoints
    from trimtab.recommender.shelf import usage
    from trimtab.sketch.diary import Diary

    found = Diary()
    try:
        wrong = Checkpoints(usage(Writer(client=client), OWN_NAMESPACE), found, 0.0, float).open()
    except NotNow as error:
        return found, [f"What the recommender keeps could not be read: {error}"]
    return found, [f"The recommender's {one}" for one in wrong]


def missing(cluster: live.Asked) -> tuple[dict[tuple[str, str], NotYet], list[str]]:
    """(workload, container) → what is missing until a recommendation is given; and what could not be read."""
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault
    from trimtab.recommender.publishing import verdicts
    from trimtab.sketch.stored import workload

    try:
        client = connect(cluster.kubeconfig, cluster.context)
        try:
            found, notes = diary(client)
        finally:
            client.close()
    except KubeFault as error:
        return {}, [f"What the recommender keeps could not be read: {error}"]
    lacking = verdicts(found, int(clock.utc().timestamp())).missing
    return {(workload(one), one.name): next(iter(parts.values())) for one, parts in lacking.items()}, notes
