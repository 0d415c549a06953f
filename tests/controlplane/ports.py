"""Free ports on loopback."""

from __future__ import annotations

import contextlib
import random
import socket

# Below where the kernel takes ports for outgoing connections from (32768 on Linux): a port must still be free
# for a server that comes back after a minute.
RANGE = range(15000, 30000)


def free(count: int) -> list[int]:
    """`count` different ports nobody listens on now."""
    with contextlib.ExitStack() as exit_stack:
        ports: list[int] = []
        for port in random.SystemRandom().sample(RANGE, len(RANGE)):
            if len(ports) == count:
                break
            attempt = exit_stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                attempt.bind(("127.0.0.1", port))
                ports.append(port)
        return ports
