"""A compactor that is killed by SIGKILL right after its Nth write: `python -m … N WORD…`.

Its Lease, reviews of access, and writes whose path has one of the words are not counted."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from kubernetes.client import ApiClient

from trimtab.compactor.process import HUNG_SECONDS, Process
from trimtab.compactor.settings import Settings
from trimtab.kube.client import Client, connect_to_cluster
from trimtab.runtime import environment, log
from trimtab.runtime.graceful_shutdown import stop_on_signals
from trimtab.workers.leader_process import create_leader_process
from trimtab.workers.policy_files import load_policy_files
from trimtab.workers.worker import run_replica


class Dying(Client):
    """Counts its writes, and does not survive one of them."""

    left = int(sys.argv[1])
    uncounted = ("/leases", "subjectaccessreviews", *sys.argv[2:])

    def write(self, method: str, path: str, *rest: Any, **more: Any) -> bytes:
        answer = super().write(method, path, *rest, **more)
        if not any(word in path for word in self.uncounted):
            self.left -= 1
            print(f"write {method} {path}", flush=True)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return answer


def main() -> None:
    settings = environment.read_as(os.environ, Settings)
    plain = connect_to_cluster(str(settings.kubeconfig), deadlines=settings.client_deadlines)
    api = plain._api
    assert isinstance(api, ApiClient)
    leader_process = create_leader_process(
        settings,
        log.build_logger("info", "json"),
        Dying(api, settings.client_deadlines),
        max_silence_seconds=HUNG_SECONDS,
    )
    stop_on_signals(leader_process.shutdown)
    run_replica(leader_process, Process(settings, leader_process, load_policy_files(settings.policies)))


if __name__ == "__main__":
    main()
