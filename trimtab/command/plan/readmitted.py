"""What came of asking policies about successors."""

from dataclasses import dataclass

from trimtab.cluster.mistake import Mistake
from trimtab.packing.world import Again


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmission:
    again: Again | None = None
    """None: no policy stands, pods ask again for what they ask now."""
    notes: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
