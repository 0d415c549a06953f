"""Reads what the compactor stored, from the live cluster or from a capture of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from trimtab.cluster.snapshot import ConfigMap, build_snapshot
from trimtab.inputs import flags, live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.compactor_state import ClusterLogin, CompactorState, build_compactor_state, read_compactor_state
from trimtab.inputs.leadership import Leadership
from trimtab.inputs.plan_inputs import parse_documents, parse_now


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStateOptions:
    """The options that name the cluster whose stored state is read, and the present time."""

    paths: Annotated[tuple[str, ...], flags.CLUSTER.with_help(f"{flags.CLUSTER.help} Default: live.")] = ()
    now: Annotated[str | None, flags.NOW_BY_CLOCK] = None
    login: ClusterLogin

    @property
    def is_live(self) -> bool:
        """Whether the state is read from a live cluster."""
        return all(path == live_cluster.LIVE for path in self.paths)

    def read(self) -> CompactorState:
        """Read the state. Raises UsageError with the mistakes of the files and of --now, and RuntimeFailure if the
        cluster cannot be read."""
        now, mistakes = parse_now(self.now)
        if self.is_live and not mistakes:
            state = read_compactor_state(self.login)
        else:
            files = [path for path in self.paths if path != live_cluster.LIVE]
            documents, more_mistakes = parse_documents(live_cluster.read_paths(files))
            built = build_snapshot(documents)
            mistakes += [*more_mistakes, *built.mistakes]
            if mistakes:
                raise UsageError(mistakes)
            namespace = self.login.namespace
            # A ConfigMap of another namespace may be written by others.
            own = tuple(one for one in built.snapshot.objects_of(ConfigMap) if one.metadata.namespace == namespace)
            objects = {**built.snapshot.objects, ConfigMap.__name__: own}
            state = build_compactor_state(replace(built.snapshot, objects=objects), (), Leadership(), namespace)
        return state if now is None else replace(state, read_at=now)
