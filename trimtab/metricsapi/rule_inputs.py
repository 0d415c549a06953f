"""What one replica reads from its cluster: rules, running pods, and how API servers name users.

Rules and the aggregation layer's configuration are read repeatedly, because both may change while the process runs. If
a new version is not valid, the last valid one stays in force.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import Unreadable
from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault
from trimtab.kube.informers import ClusterInformers
from trimtab.kube.objects import get_plain
from trimtab.kube.resources import LIST_SOURCES
from trimtab.kube.watch_state import WatchSettings
from trimtab.metricsapi.pod_addresses import AddressRules
from trimtab.metricsapi.request_header import CONFIG_NAME, CONFIG_NAMESPACE, RequestHeaderConfig, read_config
from trimtab.metricsapi.rules import RULES_KEY, MetricRule, read_rules
from trimtab.metricsapi.settings import Settings
from trimtab.metricsapi.targets import RunningPod, retain_pod
from trimtab.runtime.log import Logger

RULES_INTERVAL_SECONDS = 10.0
HEADER_INTERVAL_SECONDS = 60.0


def read_request_header_config(client: Client) -> RequestHeaderConfig | Unreadable:
    """Returns how the API servers of this cluster name users. Raises any KubeFault."""
    document = get_plain(client, "ConfigMap", CONFIG_NAME, CONFIG_NAMESPACE)
    if document is None:
        return Unreadable(f"ConfigMap {CONFIG_NAMESPACE}/{CONFIG_NAME}", "the ConfigMap does not exist")
    return read_config(document.get("data") or {})


def write_client_authorities(file: Path, config: RequestHeaderConfig) -> bool:
    """Writes the certificate authorities of the aggregation layer to a file, in one step. Returns whether they have
    changed."""
    content = config.client_ca.encode()
    if file.exists() and file.read_bytes() == content:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(file)
    return True


@dataclass(slots=True)
class RulesReader:
    """The rules in force: those of a file that was read once, or those of the ConfigMap."""

    settings: Settings
    client: Client
    log: Logger
    rules: tuple[MetricRule, ...] | None = None
    """The rules, or None until they have been read for the first time."""
    is_invalid: bool = False
    _last_problem: str = ""

    def read_again(self) -> bool:
        """Reads the ConfigMap again, and returns whether the rules in force have changed. If the ConfigMap does not
        exist, there are no rules."""
        try:
            reading = self._read()
        except KubeFault as error:
            self._note_problem(str(error))
            return False
        if isinstance(reading, str):
            self._note_problem(reading)
            # A first version that is not valid means no rules, or the replica would never be ready.
            reading = () if self.rules is None else self.rules
        else:
            self._note_problem("")
        is_changed, self.rules = reading != self.rules, reading
        return is_changed

    def _read(self) -> tuple[MetricRule, ...] | str:
        """Returns the rules of the document, or its mistakes as text."""
        file = self.settings.rules_file
        if file is not None:
            name, text = str(file), file.read_text(encoding="utf-8")
        else:
            name = f"ConfigMap {self.settings.namespace}/{self.settings.rules_config_map}"
            document = get_plain(self.client, "ConfigMap", self.settings.rules_config_map, self.settings.namespace)
            text = ((document or {}).get("data") or {}).get(RULES_KEY) or ""
        reading = read_rules(name, text)
        return "\n".join(map(str, reading.mistakes)) if reading.mistakes else reading.rules

    def _note_problem(self, problem: str) -> None:
        if problem and problem != self._last_problem:
            self.log.warning("the rules cannot be read, the last valid rules stay in force", why=problem)
        self._last_problem, self.is_invalid = problem, bool(problem)


def find_rule_mistakes(file: Path) -> tuple[ConfigError, ...]:
    """Returns the mistakes in a file of rules. Raises OSError if the file cannot be read."""
    return read_rules(str(file), file.read_text(encoding="utf-8")).mistakes


@dataclass(slots=True)
class RunningPodWatcher:
    """The running pods of the cluster, and whether they have changed since they were last read."""

    client: Client
    address_rules: AddressRules
    _changed: threading.Event = field(default_factory=threading.Event)
    _informers: ClusterInformers = field(init=False)

    def __post_init__(self) -> None:
        self._informers = ClusterInformers(
            self.client,
            [LIST_SOURCES["ScrapedPod"]],
            terms=WatchSettings(),
            holds={"ScrapedPod": partial(retain_pod, rules=self.address_rules)},
            on_change=lambda _change: self._changed.set(),
        )

    def start(self) -> None:
        """Starts the watch and returns at once."""
        self._informers.start()

    def stop(self) -> None:
        self._informers.stop()

    def take_changed_pods(self) -> tuple[RunningPod, ...] | None:
        """Returns all pods if they have changed since the last call; None if they have not, or were never listed."""
        if not self._informers.is_synced or not self._changed.is_set():
            return None
        # Cleared first: a change while the pods are read counts for the next call.
        self._changed.clear()
        return self._informers.values_of("ScrapedPod")

    def mark_changed(self) -> None:
        """Makes the next `take_changed_pods` return all pods, even if none has changed."""
        self._changed.set()


@dataclass(slots=True)
class RequestHeaderKeeper:
    """Keeps current how API servers name users. The TLS context reads the authorities from the file that this class
    writes."""

    client: Client
    file: Path
    log: Logger
    config: RequestHeaderConfig | None = None
    _last_problem: str = ""

    def read_again(self) -> None:
        """Reads the ConfigMap again. If it cannot be read or used, the last valid configuration stays in force."""
        try:
            config = read_request_header_config(self.client)
            problem = str(config) if isinstance(config, Unreadable) else ""
            if isinstance(config, RequestHeaderConfig):
                if write_client_authorities(self.file, config):
                    self.log.info(
                        "the certificates of the aggregation layer's authorities were written to a file",
                        file=str(self.file),
                    )
                self.config = config
        except (KubeFault, OSError) as error:
            problem = str(error)
        if problem and problem != self._last_problem:
            self.log.warning("the configuration of the aggregation layer cannot be read", why=problem)
        self._last_problem = problem


def repeat_until_stopped(action: Callable[[], object], every: float, wait_for_stop: Callable[[float], bool]) -> None:
    """Runs the action repeatedly. Before each run, `wait_for_stop` waits `every` seconds; it returns True to end the
    loop."""
    while not wait_for_stop(every):
        action()
