"""The priorities of node groups for the cluster autoscaler's priority expander, according to the ranking of their
machine types.

The groups of the best type come first, then those of the best type of another family, so that there is an alternative
if the cloud has no nodes of one family; then the other ranked types. Groups of spot machines are in the same order
among themselves, and come before each group of machines on demand that gives less for a dollar: by their own price, or
by the usual discount on the list price. A group whose type is left out or unknown is not named: the catch-all pattern
keeps it usable. Legacy groups come last.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.machines.expander_map import (
    CATCH_ALL_PRIORITY,
    DEMOTED_PRIORITY,
    LEGACY_PRIORITY,
    ExpanderMap,
    build_priorities,
    format_priorities,
    parse_expander_map,
    replay_priorities,
)
from trimtab.machines.go_regexp import quote_group_name
from trimtab.machines.prices import SPOT_DISCOUNT_PERCENT
from trimtab.sizing.ranking.rank_types import Ranking
from trimtab.sizing.ranking.score import TypeScore


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPriorities:
    """The priority map, and the priority that it gives to each group."""

    text: str
    """The value of the ConfigMap's key `priorities`."""
    priorities: Mapping[str, int]
    """Node group → its priority."""
    unnamed: tuple[str, ...]
    """Groups that only the catch-all matches, because their type is not ranked or not known."""
    problems: tuple[str, ...] = ()
    """What is wrong with the map when it is evaluated by the autoscaler's rules; empty if nothing is."""
    types: Mapping[str, str] = field(default_factory=dict)


def order_tiers(ranking: Ranking) -> tuple[TypeScore, ...]:
    """Returns the types in the order of their priorities: the best one, the best one of another family, then the
    rest."""
    if not ranking.scores:
        return ()
    best = ranking.scores[0]
    other = next((one for one in ranking.scores if one.candidate.family != best.candidate.family), None)
    first = (best,) if other is None else (best, other)
    return (*first, *(one for one in ranking.scores if one not in first))


def _merge_spot(tiers: Sequence[TypeScore], spot_prices: Mapping[str, int]) -> Iterator[tuple[TypeScore, bool]]:
    """Yields each type twice, (score, whether it is the type on spot): both in the order of `tiers`, and of the next
    two the one first that gives more for a dollar."""

    def value_on_spot(score: TypeScore) -> float:
        price = score.candidate.price
        usual = price * (100 - SPOT_DISCOUNT_PERCENT) / 100
        return score.gib_per_dollar * price / (spot_prices.get(score.candidate.name) or usual)

    spot, on_demand = list(tiers), list(tiers)
    while spot or on_demand:
        is_spot = bool(spot) and (not on_demand or value_on_spot(spot[0]) >= on_demand[0].gib_per_dollar)
        yield (spot if is_spot else on_demand).pop(0), is_spot


def rate_groups(
    ranking: Ranking,
    types: Mapping[str, str],
    groups: Iterable[str],
    legacy: Iterable[str] = (),
    spot: Collection[str] = (),
    spot_prices: Mapping[str, int] | None = None,
) -> GroupPriorities:
    """Returns the priority map for these node groups.

    `types`: group → machine type, as far as it is known. `legacy`: the groups of legacy pools. `spot`: the groups of
    spot machines. `spot_prices`: type → micro-dollars an hour of a spot machine, as far as it is known.
    """
    names = sorted(set(groups))
    offered = {types[name] for name in names if name in types}
    # Types that no group has would only use up tiers.
    available = Ranking(
        workload=ranking.workload,
        left_out=ranking.left_out,
        scores=tuple(score for score in ranking.scores if score.candidate.name in offered),
    )
    tiers = [
        [name for name in names if types.get(name) == score.candidate.name and (name in spot) is is_spot]
        for score, is_spot in _merge_spot(order_tiers(available), spot_prices or {})
    ]
    legacy_names = [name for name in names if name in set(legacy)]
    text = format_priorities(build_priorities(tiers, legacy_names))
    expected = _expected_priorities(text, names, legacy_names)
    named = {name for tier in tiers for name in tier} | set(legacy_names)
    return GroupPriorities(
        text=text,
        priorities=expected,
        unnamed=tuple(name for name in names if name not in named),
        problems=tuple(replay_priorities(text, expected)),
        types={name: types[name] for name in names if name in types},
    )


def _expected_priorities(text: str, names: list[str], legacy: list[str]) -> dict[str, int]:
    """Returns the priority that each group is meant to have. A group in `legacy` has `LEGACY_PRIORITY`. Any other group
    has the priority of its exact name in the text, or `CATCH_ALL_PRIORITY` if the text does not name it."""
    parsed = parse_expander_map(text)
    written = parsed.texts if isinstance(parsed, ExpanderMap) else {}
    place = {
        pattern: priority
        for priority, patterns in written.items()
        for pattern in patterns
        if priority > DEMOTED_PRIORITY
    }
    low = dict.fromkeys(legacy, LEGACY_PRIORITY)
    return {name: low.get(name, place.get(quote_group_name(name), CATCH_ALL_PRIORITY)) for name in names}
