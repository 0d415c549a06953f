"""A compactor that is killed by SIGKILL right after its Nth write (its Lease's not counted): `python -m … N`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from kubernetes.client import ApiClient

from trimtab.compactor.process import HUNG, NAME, Process
from trimtab.compactor.settings import Settings
from trimtab.kube.client import Client, connect
from trimtab.kube.leader_process import replica
from trimtab.runtime import environment, log
from trimtab.runtime.graceful_shutdown import on_signals


class Dying(Client):
    """Counts its writes, and does not survive one of them."""

    left = int(sys.argv[1])

    def write(self, method: str, path: str, *rest: Any, **more: Any) -> bytes:
        answer = super().write(method, path, *rest, **more)
        if "/leases/" not in path and not path.endswith("/leases"):
            self.left -= 1
            print(f"write {method} {path}", flush=True)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return answer


def main() -> None:
    settings = environment.read_as(os.environ, Settings)
    plain = connect(str(settings.kubeconfig), deadlines=settings.deadlines)
    api = plain._api
    assert isinstance(api, ApiClient)
    standing = replica(NAME, settings, log.build("info", "json"), Dying(api, settings.deadlines), hung=HUNG)
    on_signals(standing.stop)
    Process(settings, standing).run()


if __name__ == "__main__":
    main()
