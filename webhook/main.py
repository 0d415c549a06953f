"""Settings in, the service out: where policies, facts and the deciding functions meet the routes.

Start the webhook: the pair first, then the server.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import NoReturn

from prometheus_client import CollectorRegistry

import certs
from trimtab.admission.handler import answer
from trimtab.admission.quota_headroom import QuotaAnswers
from trimtab.admission.response_cache import ResponseCache
from trimtab.admission.validate_config import validate
from trimtab.cluster.signature import secret_of
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.recommendation_age import RecommendationAges, ages
from trimtab.runtime import clock, log
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger
from trimtab.runtime.serve import launch
from trimtab.runtime.settings import Settings
from webhook.cert_manager import first_pair
from webhook.handlers import DeferredReply, HttpReply, Service
from webhook.metrics import DecisionLogger, WebhookMetrics
from webhook.policy_state import StateLogger, WebhookPolicyState, from_files
from webhook.signing import MarkerKeys


@dataclass(frozen=True, slots=True)
class PolicyStateSource:
    """Where the World comes from."""

    world: Callable[[], WebhookPolicyState]
    ready: Callable[[], tuple[bool, str]]
    close: Callable[[], None] = lambda: None
    terms: Callable[[AdmissionSettings], AdmissionSettings] = lambda standing: standing
    """The terms as they are at this moment."""


def build(settings: Settings) -> Service:
    """The service these settings describe. Called once per process, after the fork."""
    meters, logger = _meters(settings), log.build(settings.log_level, settings.log_format)
    source = _live(settings, meters, logger) if settings.live else _fixed(settings, meters)
    world = source.world
    memory, teller, one_at_a_time = ResponseCache(answers=QuotaAnswers()), DecisionLogger(meters, logger), Lock()

    def decided(body: bytes, *, waits: bool) -> HttpReply | DeferredReply:
        standing = world()
        with one_at_a_time:  # The event loop is one thread; another server's may be more.
            began = clock.elapsed()
            terms = source.terms(standing.terms)
            found = answer(body, standing.policies, standing.facts, terms, memory, waits=waits)
            seconds = clock.elapsed() - began
        owner = found.awaits
        if owner is not None:
            return DeferredReply(lambda: owner in world().facts.owners)
        teller.tell(found.record, seconds)
        return HttpReply(found.status, found.body)

    def mutate(body: bytes) -> HttpReply:
        reply = decided(body, waits=False)
        assert isinstance(reply, HttpReply), "there is nothing to wait for"
        return reply

    def check(body: bytes) -> HttpReply:
        return HttpReply(*validate(body))

    def failed(path: str, error: Exception) -> None:
        meters.failed("edge")
        logger.error("review failed", path=path, error=f"{type(error).__name__}: {error}")

    return Service(
        mutate=mutate,
        attempt=partial(decided, waits=True) if settings.live else None,
        validate=check,
        ready=source.ready,
        metrics=teller.metrics,
        failed=failed,
        observe=meters.answered,
        close=source.close,
    )


def _fixed(settings: Settings, meters: WebhookMetrics) -> PolicyStateSource:
    """From files: what they say now is what holds until the process ends."""
    standing = from_files(settings)
    _standing(meters, lambda: standing)
    return PolicyStateSource(lambda: standing, lambda: (True, f"{len(standing.policies.all)} policies"))


def _live(settings: Settings, meters: WebhookMetrics, logger: Logger) -> PolicyStateSource:
    """From watches, which begin here: this is after the fork."""
    from trimtab.kube import signing_keys
    from trimtab.kube.client import connect
    from trimtab.kube.resources import autoscaler_status
    from webhook.policy_state import PolicyStateWatcher as Live

    status = autoscaler_status(settings.autoscaler_namespace, settings.autoscaler_status_configmap)
    base, herald = from_files(settings), StateLogger(meters, logger)
    live = Live(connect(), base, policies=not settings.policies, hears=herald, autoscaler=status).start()
    _standing(meters, lambda: live.world)
    meters.problems(live.problems)
    meters.facts_age(lambda: _or_nan(live.age()))

    def ready() -> tuple[bool, str]:
        if live.complete:
            return True, f"{len(live.world.policies.all)} policies"
        return False, f"waiting for {', '.join(live.missing()) or 'the first facts'}"

    stop, client, secret = GracefulShutdown(), connect(), secret_of("webhook")
    keys = MarkerKeys(lambda: signing_keys.read_or_create(client, secret, settings.namespace), logger)
    keys.start(stop.wait)

    def close() -> None:
        stop.begin()
        live.stop()
        client.close()

    return PolicyStateSource(lambda: live.world, ready, close, keys.terms)


def _standing(meters: WebhookMetrics, world: Callable[[], WebhookPolicyState]) -> None:
    meters.policies(lambda: len(world().policies.all))
    meters.paused(lambda: world().terms.paused)
    meters.recommendations(_Ages(world))


@dataclass(slots=True)
class _Ages:
    """The ages of recommendations, counted once for all labels of a scrape and at most once a minute."""

    world: Callable[[], WebhookPolicyState]
    _counted: tuple[ClusterFacts, Policies, int, RecommendationAges] | None = None

    def __call__(self) -> RecommendationAges:
        world, minute = self.world(), int(clock.utc().timestamp()) // 60
        kept = self._counted
        if kept is None or kept[0] is not world.facts or kept[1] is not world.policies or kept[2] != minute:
            kept = (world.facts, world.policies, minute, ages(world.facts, world.policies, minute * 60))
            self._counted = kept
        return kept[3]


def _or_nan(seconds: float | None) -> float:
    return float("nan") if seconds is None else seconds


def _meters(settings: Settings) -> WebhookMetrics:
    meters = WebhookMetrics(CollectorRegistry())

    def expiry() -> float:
        found = certs.status(settings.certs_folder, clock.utc()).not_after
        return found.timestamp() if found else float("nan")

    meters.certificate_expiry(expiry)
    return meters


APPLICATION = "webhook.entry:application"


def run(settings: Settings, log: Logger, application: str = APPLICATION) -> NoReturn:
    """Serve over TLS from the settings' certificate folder until a signal; ends in `SystemExit`.

    Raises `certs.CertsError` when the folder holds no whole pair, `CannotServe` when the address
    cannot be had or the Secret gives no pair: all before anything listens.
    """

    def told(problem: certs.Problem | None) -> None:
        if problem is None:
            log.info("certificate reloaded", folder=str(settings.certs_folder))
            _judge(settings, log)
        else:
            log.warning("certificate files refused, what was good is kept", code=problem.code, why=problem.says)

    first_pair(settings, log)
    _judge(settings, log)
    launch(
        application, settings, log, certs.CertificateLoader(settings.certs_folder, told, settings.client_ca_file).front
    )


def _judge(settings: Settings, log: Logger) -> None:
    """Tell what is wrong with the pair. It is served all the same: API servers judge it, and the next one may come."""
    for problem in certs.status(settings.certs_folder, clock.utc()).problems:
        log.warning("certificate", code=problem.code, why=problem.says)
