"""Settings in, the service out: where policies, facts and the deciding functions meet the routes."""

from dataclasses import dataclass
from threading import Lock

from prometheus_client import CollectorRegistry

import certs
from trimtab.admission.answer import answer
from trimtab.admission.remembered import Memory
from trimtab.admission.validate import validate
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.snapshot import load
from trimtab.policy.document import Policies
from trimtab.policy.facts import NOTHING_KNOWN, Facts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.subject import Terms
from trimtab.runtime import clock, files, log
from trimtab.runtime.errors import RuntimeFault
from trimtab.runtime.settings import Settings
from webhook.metrics import Meters
from webhook.reply import Reply
from webhook.service import Service
from webhook.told import Teller


class UnsoundFiles(RuntimeFault):
    """Policies or a snapshot with mistakes: all of them, together."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class World:
    """What decisions rest on."""

    policies: Policies
    facts: Facts
    terms: Terms


def world(settings: Settings) -> World:
    """Policies and facts as the settings name them. Raises UnreadableFiles or UnsoundFiles with every mistake."""
    loaded = load_policies(files.read(settings.policies) if settings.policies else files.shipped())
    snapshot = load(files.read([settings.cluster]) if settings.cluster else [])
    mistakes = (*loaded.mistakes, *snapshot.mistakes)
    if mistakes:
        raise UnsoundFiles(mistakes)
    terms = Terms(overhead=settings.overhead, paused=settings.paused, own_namespace=settings.namespace)
    # Without a snapshot nothing is known of the cluster, which is not the same as an empty one.
    facts = from_snapshot(snapshot.snapshot, own_namespace=settings.namespace) if settings.cluster else NOTHING_KNOWN
    return World(loaded.policies, facts, terms)


def build(settings: Settings) -> Service:
    """The service these settings describe. Called once per process, after the fork."""
    standing = world(settings)
    meters, logger = _meters(settings), log.build(settings.log_level, settings.log_format)
    memory, teller, one_at_a_time = Memory(), Teller(meters, logger), Lock()

    def mutate(body: bytes) -> Reply:
        with one_at_a_time:  # The event loop is one thread; another server's may be more.
            found = answer(body, standing.policies, standing.facts, standing.terms, memory)
        teller.tell(found.record)
        return Reply(found.status, found.body)

    def check(body: bytes) -> Reply:
        return Reply(*validate(body))

    def failed(path: str, error: Exception) -> None:
        meters.failed("edge")
        logger.error("review failed", path=path, error=f"{type(error).__name__}: {error}")

    return Service(
        mutate=mutate,
        validate=check,
        ready=lambda: (True, f"{len(standing.policies.all)} policies"),
        metrics=teller.metrics,
        failed=failed,
        observe=meters.answered,
    )


def _meters(settings: Settings) -> Meters:
    meters = Meters(CollectorRegistry())

    def expiry() -> float:
        found = certs.status(settings.certs, clock.utc()).not_after
        return found.timestamp() if found else float("nan")

    meters.certificate_expiry(expiry)
    return meters
