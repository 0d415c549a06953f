"""Replays variants side by side, each in a process of its own: they have nothing in common but the recording."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from threading import Thread

from trimtab.cli.replay.run import ReplayedVariant, ReplaySteps, ReplayVariant, ReplayWorld, replay_variant

MIN_NODE_HOURS = 50
"""A smaller recording is replayed in less time than further processes need to start."""
MAX_POD_STATES = 2_000_000
"""How many states of pods all processes together may hold: each has the whole recording, about 0.4 KiB a state."""
SHOW_SECONDS = 0.2
"""The time between two looks at how far the processes are."""


def choose_processes(variants: int, node_hours: float, pod_states: int, cpus: int | None = None) -> int:
    """Returns in how many processes to replay. `cpus`: how many of them run at once; None: those of the machine."""
    if node_hours < MIN_NODE_HOURS:
        return 1
    return max(1, min(cpus or os.cpu_count() or 1, variants, MAX_POD_STATES // max(1, pod_states)))


@dataclass(frozen=True, slots=True)
class SharedReplay:
    """What a process needs for any variant, and where it writes how far it is."""

    world: ReplayWorld
    steps: ReplaySteps
    seconds: ctypes.Array[ctypes.c_longlong]
    """Variant → how many seconds of it are done. Shared by all processes, as is `is_stopped`."""
    is_stopped: ctypes.Array[ctypes.c_longlong]
    """One cell: 1 once nobody waits for the results."""


class ReplayStoppedError(Exception):
    """Nobody waits for the result."""


_shared: list[SharedReplay] = []


def replay_variants(
    world: ReplayWorld,
    variants: Sequence[ReplayVariant],
    steps: ReplaySteps,
    processes: int,
    show: Callable[[int], None] = lambda seconds: None,
) -> list[ReplayedVariant]:
    """Returns the replayed variants in their order; the results do not depend on `processes`. `show` is called with how
    many seconds of all variants are done. Where no processes can be started, all happens in this one."""
    if processes > 1:
        try:
            return _replay_apart(world, variants, steps, processes, show)
        except (BrokenProcessPool, NotImplementedError, OSError):
            # A system without shared memory, or without memory for several recordings.
            pass
    seconds = [0] * len(variants)

    def show_second(number: int, second: int) -> None:
        seconds[number] = second
        show(sum(seconds))

    return [
        replay_variant(world, variant, steps, lambda second, number=number: show_second(number, second))  # type: ignore[misc]
        for number, variant in enumerate(variants)
    ]


def _replay_apart(
    world: ReplayWorld,
    variants: Sequence[ReplayVariant],
    steps: ReplaySteps,
    processes: int,
    show: Callable[[int], None],
) -> list[ReplayedVariant]:
    # Spawned, not forked: this process may have threads, such as one that draws the progress.
    context = multiprocessing.get_context("spawn")
    seconds = context.RawArray(ctypes.c_longlong, len(variants))
    is_stopped = context.RawArray(ctypes.c_longlong, 1)
    shared = SharedReplay(world, steps, seconds, is_stopped)
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin_process, initargs=(shared,)) as pool:
        futures = {number: pool.submit(_replay_number, number, variants[number]) for number in order_by_work(variants)}
        try:
            pending = set(futures.values())
            while pending:
                done, pending = wait(pending, SHOW_SECONDS, FIRST_EXCEPTION)
                show(sum(seconds))
                for future in done:
                    future.result()
            return [futures[number].result() for number in range(len(variants))]
        finally:
            is_stopped[0] = 1
            pool.shutdown(cancel_futures=True)


def order_by_work(variants: Sequence[ReplayVariant]) -> list[int]:
    """Returns the numbers of the variants in the order in which they are begun: the compactor is most work, and presets
    are listed from the most careful one on. So no process is left with a long variant at the end."""
    return sorted(range(len(variants)), key=lambda number: (not variants[number].pools, -number))


def _begin_process(shared: SharedReplay) -> None:
    _shared[:] = [shared]
    # The command is interrupted, and stops its processes by `is_stopped`.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_command, daemon=True).start()


def _end_with_command() -> None:
    """Ends this process with the command, however that ends."""
    command = multiprocessing.parent_process()
    if command is not None:
        command.join()
        os._exit(1)


def _replay_number(number: int, variant: ReplayVariant) -> ReplayedVariant:
    (shared,) = _shared

    def note_second(second: int) -> None:
        shared.seconds[number] = second
        if shared.is_stopped[0]:
            raise ReplayStoppedError

    return replay_variant(shared.world, variant, shared.steps, note_second)
