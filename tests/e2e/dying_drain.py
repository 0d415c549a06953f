"""`trimtab drain` that is killed by SIGKILL right after its Nth write to a node, pod, count: `python -m … N WORDS`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from trimtab.cli.main import main
from trimtab.kube.client import Client

_write = Client.write
_left = int(sys.argv[1])


def write(client: Client, method: str, path: str, *rest: Any, **more: Any) -> bytes:
    global _left
    answer = _write(client, method, path, *rest, **more)
    if any(part in path for part in ("/nodes/", "/eviction", "/scale", "/horizontalpodautoscalers/")):
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return answer


if __name__ == "__main__":
    Client.write = write  # type: ignore[method-assign]
    sys.argv = ["trimtab", "drain", *sys.argv[2:]]
    main()
