"""Builds the service from the settings (policies, facts, decision, metrics), and starts the webhook's server."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import NoReturn

from prometheus_client import CollectorRegistry

import certs
from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.apiserver.resourcequota import QuotaAnswers
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.admission.validate_config import validate_review
from trimtab.cluster.format_count import format_count
from trimtab.cluster.processes import secret_of
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.lint import is_avoidable
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.recommendation_age import RecommendationAges, count_recommendation_ages
from trimtab.runtime import clock, log
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger
from trimtab.runtime.metrics import value_or_nan
from trimtab.runtime.serve import launch_gunicorn
from trimtab.runtime.settings import Settings
from webhook.cert_manager import wait_for_first_pair
from webhook.handlers import DeferredReply, HttpReply, Service
from webhook.metrics import DecisionLogger, WebhookMetrics
from webhook.policy_state import StateLogger, WebhookPolicyState, from_files
from webhook.signing import MarkerKeys


@dataclass(frozen=True, slots=True)
class PolicyStateSource:
    """The source of the current policies and facts: files or watches."""

    world: Callable[[], WebhookPolicyState]
    ready: Callable[[], tuple[bool, str]]
    close: Callable[[], None] = lambda: None
    terms: Callable[[AdmissionSettings], AdmissionSettings] = lambda settings: settings
    """Returns the settings with values that change while the process runs."""


_LOG_DELAY_SECONDS = 0.1
"""How long the line of a changed pod waits for others, to be written with them."""


def build_service(settings: Settings) -> Service:
    """Returns the service that these settings describe. Called once per process, after the fork."""
    metrics = _build_metrics(settings)
    logger = log.build_logger(settings.log_level, settings.log_format, info_delay_seconds=_LOG_DELAY_SECONDS)
    source = _from_watches(settings, metrics, logger) if settings.is_live else _from_files(settings, metrics)
    policy_state = source.world
    cache, lock = ResponseCache(answers=QuotaAnswers()), Lock()
    decision_logger = DecisionLogger(metrics, logger, cache.lookups)

    def decide(body: bytes, *, waits: bool) -> HttpReply | DeferredReply:
        current = policy_state()
        with lock:  # the event loop uses one thread, but another WSGI server may use several
            started = clock.elapsed_seconds()
            settings = source.terms(current.terms)
            context = AdmissionContext(policies=current.policies, facts=current.facts, settings=settings, memory=cache)
            response = answer_review(body, context, waits=waits)
            seconds = clock.elapsed_seconds() - started
        owner = response.awaits
        if owner is not None:
            return DeferredReply(lambda: owner in policy_state().facts.owners, owner.namespace)
        decision_logger.log_review(response, seconds)
        return HttpReply(response.status, response.body)

    def mutate(body: bytes) -> HttpReply:
        reply = decide(body, waits=False)
        assert isinstance(reply, HttpReply), "there is nothing to wait for"
        return reply

    def check(body: bytes) -> HttpReply:
        return HttpReply(*validate_review(body))

    def failed(path: str, error: Exception) -> None:
        metrics.count_failure("edge")
        logger.error("review failed", path=path, error=f"{type(error).__name__}: {error}")

    return Service(
        mutate=mutate,
        attempt=partial(decide, waits=True) if settings.is_live else None,
        validate=check,
        ready=source.ready,
        metrics=decision_logger.render_metrics,
        failed=failed,
        observe=metrics.observe_review,
        close=source.close,
    )


def _from_files(settings: Settings, metrics: WebhookMetrics) -> PolicyStateSource:
    """Reads files once: their content holds until the process ends."""
    state = from_files(settings)
    _register_state_gauges(metrics, lambda: state)
    return PolicyStateSource(lambda: state, lambda: (True, format_count(len(state.policies.all), "policy", "policies")))


def _from_watches(settings: Settings, metrics: WebhookMetrics, logger: Logger) -> PolicyStateSource:
    """Starts watches. Must run after the fork: threads do not survive one."""
    from trimtab.cluster.cluster_autoscaler import split_status_names
    from trimtab.kube import signing_keys
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.resources import autoscaler_status
    from webhook.policy_state import PolicyStateWatcher as Live

    names = split_status_names(settings.autoscaler_status_configmap)
    statuses = [autoscaler_status(settings.autoscaler_namespace, name) for name in names]
    base, state_logger = from_files(settings), StateLogger(metrics, logger)
    live = Live(
        connect_to_cluster(), base, policies=not settings.policies, hears=state_logger, autoscalers=statuses
    ).start()
    _register_state_gauges(metrics, lambda: live.world)
    metrics.add_problems(live.count_problems)
    metrics.add_facts_age(lambda: value_or_nan(live.data_age()))

    def ready() -> tuple[bool, str]:
        if live.complete:
            return True, format_count(len(live.world.policies.all), "policy", "policies")
        return False, f"waiting for {', '.join(live.missing_lists()) or 'the first facts'}"

    stop, client, secret = GracefulShutdown(), connect_to_cluster(), secret_of(Settings.process)
    keys = MarkerKeys(lambda: signing_keys.read_or_create(client, secret, settings.namespace), logger)
    keys.start_refresh(stop.wait_for_stop)

    def close() -> None:
        stop.request_stop()
        live.stop()
        client.close()

    return PolicyStateSource(lambda: live.world, ready, close, keys.with_signer)


def _register_state_gauges(metrics: WebhookMetrics, world: Callable[[], WebhookPolicyState]) -> None:
    metrics.add_policies(lambda: len(world().policies.all))
    metrics.add_avoidable_policies(lambda: sum(map(is_avoidable, world().policies.all)))
    metrics.add_paused(lambda: world().terms.paused)
    metrics.add_recommendations(_CachedAges(world))


@dataclass(slots=True)
class _CachedAges:
    """The ages of recommendations, computed once for all labels of a scrape, and at most once a minute."""

    world: Callable[[], WebhookPolicyState]
    _cache: tuple[ClusterFacts, Policies, int, RecommendationAges] | None = None

    def __call__(self) -> RecommendationAges:
        world, minute = self.world(), int(clock.utc_now().timestamp()) // 60
        cached = self._cache
        if cached is None or cached[0] is not world.facts or cached[1] is not world.policies or cached[2] != minute:
            cached = (
                world.facts,
                world.policies,
                minute,
                count_recommendation_ages(world.facts, world.policies, minute * 60),
            )
            self._cache = cached
        return cached[3]


def _build_metrics(settings: Settings) -> WebhookMetrics:
    metrics = WebhookMetrics(CollectorRegistry())
    metrics.add_certificate_expiry(lambda: certs.read_status(settings.certs_folder, clock.utc_now()).expires_at_seconds)
    return metrics


APPLICATION = "webhook.entry:application"


def run(settings: Settings, log: Logger, application: str = APPLICATION) -> NoReturn:
    """Serves over TLS from the settings' certificate folder until a signal; ends in `SystemExit`.

    Raises `certs.CertsError` if the folder has no complete pair, `CannotServe` if the address cannot be bound or the
    Secret provides no pair: all before the process listens.
    """

    def log_reload(problem: certs.Problem | None) -> None:
        if problem is None:
            log.info("certificate reloaded", folder=str(settings.certs_folder))
            _log_certificate_problems(settings, log)
        else:
            event = "certificate files rejected, the previous certificate is used"
            log.warning(event, code=problem.code, why=problem.says)

    wait_for_first_pair(settings, log)
    _log_certificate_problems(settings, log)
    launch_gunicorn(
        application,
        settings,
        log,
        certs.CertificateLoader(settings.certs_folder, log_reload, settings.client_ca_file).front,
    )


def _log_certificate_problems(settings: Settings, log: Logger) -> None:
    """Logs what is wrong with the pair. It is served all the same: API servers decide whether they accept it, and a
    new pair may follow."""
    for problem in certs.read_status(settings.certs_folder, clock.utc_now()).problems:
        log.warning("certificate", code=problem.code, why=problem.says)
