"""The grammar of usage rules. A usage rule says which number of a container's usage becomes its request.

    p99            the percentile: between p1 and p99.9, with one decimal at the most
    max            the largest amount
    adaptive       the percentile that the recommender chooses for each container and resource
    p99 +15%       the same with headroom, a whole percentage
    +15%           the default with headroom

Policies and `trimtab recommend` read the same grammar. Published recommendations hold only the percentiles in
`PUBLISHED_PERCENTILES`; from the usage itself, every percentile can be computed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

PUBLISHED_PERCENTILES = (Decimal(5), Decimal(50), Decimal(90), Decimal(95), Decimal(99), Decimal(100))
"""The percentiles that a recommendation holds in addition to the recommender's own request; 100 is `max`."""
MAX_HEADROOM_PERCENT = 1000
EXPECTED_RULE = "a rule such as p95, p99.5, max or adaptive, with headroom as in p99 +15%, or the headroom +15% alone"

_RULE = re.compile(
    r"(?:(?P<share>p\d{1,2}(?:\.\d)?|max|adaptive)|(?=\+))\s*(?:\+\s*(?P<headroom>\d{1,4})\s*%)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class UsageRule:
    """A percentile of usage with headroom."""

    percentile: Decimal | None = None
    """The percentile: above 0 and at most 100, where 100 is the largest amount. None: the recommender chooses it
    (`adaptive`)."""
    headroom_percent: int = 0

    def __str__(self) -> str:
        """Returns the rule as text that `parse` reads."""
        return self.percentile_name + (f" +{self.headroom_percent}%" if self.headroom_percent else "")

    @property
    def percentile_name(self) -> str:
        """The rule without headroom: p99, max or adaptive."""
        if self.percentile is None:
            return "adaptive"
        return "max" if self.percentile == 100 else f"p{self.percentile.normalize():f}"

    @property
    def is_published(self) -> bool:
        """Whether published recommendations hold the percentile of this rule."""
        return self.percentile is None or self.percentile in PUBLISHED_PERCENTILES

    def with_headroom(self, amount: int) -> int:
        """Returns the amount (millicores or bytes) with the headroom added, rounded up."""
        return -(-amount * (100 + self.headroom_percent) // 100)


ADAPTIVE = UsageRule()


def parse(text: str, default: UsageRule = ADAPTIVE) -> UsageRule:
    """Returns the rule that the text describes. A text with headroom alone takes the percentile of `default`. Raises
    ValueError with a sentence that says what was expected."""
    match = _RULE.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(EXPECTED_RULE)
    headroom = int(match["headroom"] or 0)
    if headroom > MAX_HEADROOM_PERCENT:
        raise ValueError(f"headroom of at most {MAX_HEADROOM_PERCENT}%")
    if match["share"] is None:
        return UsageRule(default.percentile, headroom)
    return UsageRule(_percentile(match["share"]), headroom)


def _percentile(share: str) -> Decimal | None:
    if share == "adaptive":
        return None
    # Decimal, not float: 99.9 must compare equal to a published percentile.
    percentile = Decimal(100) if share == "max" else Decimal(share[1:])
    if percentile == 0:
        raise ValueError("a percentile above p0")
    return percentile
