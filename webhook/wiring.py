"""Settings in, the service out: where policies, facts and the deciding functions meet the routes."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from prometheus_client import CollectorRegistry

import certs
from trimtab.admission.answer import answer
from trimtab.admission.remembered import Memory
from trimtab.admission.validate import validate
from trimtab.runtime import clock, log
from trimtab.runtime.log import Logger
from trimtab.runtime.settings import Settings
from webhook.herald import Herald
from webhook.metrics import Meters
from webhook.reply import Reply
from webhook.service import Service
from webhook.told import Teller
from webhook.world import World, from_files


@dataclass(frozen=True, slots=True)
class Source:
    """Where the World comes from."""

    world: Callable[[], World]
    ready: Callable[[], tuple[bool, str]]
    close: Callable[[], None] = lambda: None


def build(settings: Settings) -> Service:
    """The service these settings describe. Called once per process, after the fork."""
    meters, logger = _meters(settings), log.build(settings.log_level, settings.log_format)
    source = _live(settings, meters, logger) if settings.live else _fixed(settings, meters)
    world = source.world
    memory, teller, one_at_a_time = Memory(), Teller(meters, logger), Lock()

    def mutate(body: bytes) -> Reply:
        standing = world()
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
        ready=source.ready,
        metrics=teller.metrics,
        failed=failed,
        observe=meters.answered,
        close=source.close,
    )


def _fixed(settings: Settings, meters: Meters) -> Source:
    """From files: what they say now is what holds until the process ends."""
    standing = from_files(settings)
    _standing(meters, lambda: standing)
    return Source(lambda: standing, lambda: (True, f"{len(standing.policies.all)} policies"))


def _live(settings: Settings, meters: Meters, logger: Logger) -> Source:
    """From watches, which begin here: this is after the fork."""
    from trimtab.kube.client import connect
    from webhook.live import Live

    live = Live(connect(), from_files(settings), policies=not settings.policies, hears=Herald(meters, logger)).start()
    _standing(meters, lambda: live.world)
    meters.problems(live.problems)
    meters.facts_age(lambda: _or_nan(live.age()))

    def ready() -> tuple[bool, str]:
        if live.complete:
            return True, f"{len(live.world.policies.all)} policies"
        return False, f"waiting for {', '.join(live.missing()) or 'the first facts'}"

    return Source(lambda: live.world, ready, live.stop)


def _standing(meters: Meters, world: Callable[[], World]) -> None:
    meters.policies(lambda: len(world().policies.all))
    meters.paused(lambda: world().terms.paused)


def _or_nan(seconds: float | None) -> float:
    return float("nan") if seconds is None else seconds


def _meters(settings: Settings) -> Meters:
    meters = Meters(CollectorRegistry())

    def expiry() -> float:
        found = certs.status(settings.certs, clock.utc()).not_after
        return found.timestamp() if found else float("nan")

    meters.certificate_expiry(expiry)
    return meters
