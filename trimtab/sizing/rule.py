"""Which number of the usage becomes the request?

`P95` is what the webhook gives a static workload, `P5` what it gives one that a VPA takes over. `STEADY` asks for a
little more where usage is even and for less where cpu comes in bursts: a burst finds idle cpu, since nothing limits
it, while memory that is not there kills. `LEAN` goes as low as the VPA's own target does.
"""

from dataclasses import dataclass

from trimtab.sizing.enough import Seen


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    share: str
    """As people call it: P5, P95."""
    headroom: float = 0.0
    """As a share of it, on top."""
    burst: float | None = None
    """Most of cpu, as a multiple of P90; None bounds nothing."""

    def of(self, seen: Seen) -> float:
        """Cores, or bytes, not rounded."""
        found = seen.p5 if self.share == "P5" else seen.p95
        return (self._most(seen) if self._caps(seen) else found) * (1 + self.headroom)

    def _most(self, seen: Seen) -> float:
        return seen.p90 * (self.burst or 1.0)

    def _caps(self, seen: Seen) -> bool:
        return self.burst is not None and seen.resource == "cpu" and self.share != "P5" and self._most(seen) < seen.p95

    def words(self, seen: Seen) -> str:
        """What it took, for people: "P95 over 14 days", of peaks where it is memory, of P90 where that is the most."""
        share = self.share
        if self._caps(seen):
            share = "P90" if self.burst == 1 else f"{self.burst:g} times P90"
        peaks = " of peaks" if seen.resource == "memory" else ""
        more = f" and {self.headroom:.0%}" if self.headroom else ""
        return f"{share}{peaks}{more} over {seen.span}"


P5 = Rule("p5", "P5")
P95 = Rule("p95", "P95")
STEADY = Rule("steady", "P95", headroom=0.05, burst=1.25)
LEAN = Rule("lean", "P95", headroom=0.05, burst=1.0)
RULES = {rule.name: rule for rule in (P95, STEADY, LEAN)}
"""What a static workload may be sized by."""
