"""Reads profiles from YAML: those that ship with Trimtab, and those that a user has written in the same form.

All mistakes of all documents are reported together. Every field except `name`, `cpu` and `memory` is optional:

    name: ours
    title: What we measured
    source: trimtab reserved measure
    reservedAs: kube                 # kube | system
    memorySize: capacity             # capacity: what the kubelet sees | installed: what the machine is sold with
    memory:
      base: 200Mi
      perPod: 12Mi                   # times the node's maxPods
      brackets: [{upTo: 4Gi, percent: 25}, {percent: 10}]
      maxPercent: 25                 # of the size
      minimum: 500Mi
      smallMachine: {below: 1Gi, reserve: 255Mi}
      roundSize: {to: 1Gi, direction: down}       # up | down | nearest
      round: {to: 1Gi, direction: nearest}
    cpu: {base: 80m, perPod: 1m}     # the fields of memory, also sharedCore and roundBrackets
    eviction: {memory: 100Mi, diskPercent: 10}
    ephemeralStorage: {smallestOf: [{base: 6Gi, percent: 35}, {base: 100Gi}], localDisks: [50Gi]}
    processIds: 20000
    loss: {percent: 7.5, arm64: 64Mi, round: {to: 1Mi, direction: up}}
    smallest: {cpu: 2, memory: 4Gi}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from typing import Any

from trimtab.cluster import quantity
from trimtab.cluster.config_error import MAX_MISTAKES, ConfigError, first_mistakes, quote_value
from trimtab.cluster.documents.read_document import DocumentReader
from trimtab.cluster.documents.value_types import InvalidValue, Parse, one_of, whole_number, word_of
from trimtab.cluster.yaml_documents import read_documents
from trimtab.cluster.yaml_parser import Path
from trimtab.reservations.profile import (
    ZERO,
    AmountRule,
    Bracket,
    Direction,
    DiskRule,
    LossRule,
    Profile,
    ReservedAs,
    Rounding,
)

_NANO_PER_MILLICORE = 10**6
_MAX_PIDS = 4_194_304
"""The kernel's largest pid_max on 64-bit machines."""


@dataclass(frozen=True, slots=True)
class ProfileReading:
    """The profiles that could be read, and the mistakes in the others."""

    profiles: tuple[Profile, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()


@lru_cache(maxsize=1)
def shipped_profiles() -> Mapping[str, Profile]:
    """Returns name → profile for the profiles that ship with Trimtab, in the order of their file."""
    text = files("trimtab.reservations").joinpath("profiles", "profiles.yaml").read_bytes()
    reading = read_profiles("profiles.yaml", text)
    assert not reading.mistakes, reading.mistakes
    return {profile.name: profile for profile in reading.profiles}


def read_profiles(file: str, content: bytes) -> ProfileReading:
    """Returns the profiles of a YAML file, one for each document, and all mistakes in it."""
    parsed = read_documents(file, content)
    if parsed.mistakes:
        return ProfileReading(mistakes=parsed.mistakes)
    if not parsed.documents:
        return ProfileReading(mistakes=(ConfigError(file=file, expected="a profile", got="no document"),))
    profiles: list[Profile] = []
    mistakes: list[ConfigError] = []
    for document in parsed.documents:
        reader = _ProfileReader(document)
        profile = reader.read_profile()
        mistakes += first_mistakes(reader.mistakes)
        if profile is not None and not reader.mistakes:
            profiles.append(profile)
    return ProfileReading(tuple(profiles), tuple(mistakes))


def _parse_memory(value: Any, path: Path) -> Fraction:
    return _parse_amount(value, path, quantity.NANO_PER_UNIT, "an amount of bytes such as 100Mi or 50M")


def _parse_cpu(value: Any, path: Path) -> Fraction:
    return _parse_amount(value, path, _NANO_PER_MILLICORE, "an amount of cpu such as 80m or 2")


def _parse_amount(value: Any, path: Path, scale: int, expected: str) -> Fraction:
    if not quantity.is_quantity(value) or isinstance(value, bool) or quantity.parse(value) < 0:
        raise InvalidValue(path, expected, quote_value(value))
    return Fraction(quantity.parse(value), scale)


def _parse_share(value: Any, path: Path) -> Fraction:
    """Returns a percentage as an exact share from 0 to 1: the percentage 0.25 is 1/400."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise InvalidValue(path, "a percentage from 0 to 100", quote_value(value))
    return Fraction(str(value)) / 100


def _parse_text(value: Any, path: Path) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue(path, "text", quote_value(value))
    return value.strip()


_PROFILE_FIELDS: Mapping[str, Parse] = {
    "name": _parse_text,
    "title": _parse_text,
    "source": _parse_text,
    "processIds": whole_number(0, _MAX_PIDS).parse,
    "reservedAs": one_of(ReservedAs).parse,
    "memorySize": word_of({"capacity": False, "installed": True}).parse,
}
_PROFILE_SECTIONS = ("memory", "cpu", "eviction", "ephemeralStorage", "loss", "smallest")


@dataclass(slots=True)
class _ProfileReader(DocumentReader):
    """Reads one document with a profile."""

    def read_profile(self) -> Profile | None:
        """Returns the profile, or None if its name, its cpu or its memory is missing."""
        section = self.read_mapping(self.document.value, (), (*_PROFILE_FIELDS, *_PROFILE_SECTIONS))
        values = self.read_values(section, (), _PROFILE_FIELDS)
        for name in ("name", "memory", "cpu"):
            if name not in section:
                self.add_mistake(InvalidValue((name,), "a value", "none"))
        eviction = self._known_fields(section, "eviction", {"memory": _parse_memory, "diskPercent": _parse_share})
        smallest = self._known_fields(section, "smallest", {"memory": _parse_memory, "cpu": _parse_cpu})
        rules = {key: self._amount_rule(section, key, parse) for key, parse in _PARSE_BY_RESOURCE.items()}
        disk, loss = self._disk_rule(section), self._loss_rule(section)
        if self.mistakes:
            return None
        return Profile(
            name=values["name"],
            title=values.get("title", values["name"]),
            source=values.get("source", ""),
            reserved_as=values.get("reservedAs", ReservedAs.KUBE),
            cpu=rules["cpu"],
            memory=rules["memory"],
            counts_installed_memory=values.get("memorySize", False),
            process_ids=values.get("processIds"),
            disk=disk,
            loss=loss,
            eviction_disk=eviction.get("diskPercent", ZERO),
            **({"eviction_memory": eviction["memory"]} if "memory" in eviction else {}),
            smallest=(int(smallest.get("cpu", 1000)), int(smallest.get("memory", 1 << 30))),
        )

    def _amount_rule(self, profile: Mapping[str, Any], key: str, parse: Parse) -> AmountRule:
        simple: dict[str, Parse] = {
            "base": parse,
            "perPod": parse,
            "minimum": parse,
            "maxPercent": _parse_share,
            "sharedCore": parse,
        }
        roundings = ("roundSize", "roundBrackets", "round")
        section = self.read_mapping(profile.get(key), (key,), (*simple, *roundings, "brackets", "smallMachine"))
        values = self.read_values(section, (key,), simple)
        small = self._known_fields(section, "smallMachine", {"below": parse, "reserve": parse}, (key,))
        size_rounding, bracket_rounding, rounding = (self._rounding(section, name, parse, (key,)) for name in roundings)
        return AmountRule(
            base=values.get("base", ZERO),
            per_pod=values.get("perPod", ZERO),
            minimum=values.get("minimum", ZERO),
            max_share=values.get("maxPercent"),
            shared_core=values.get("sharedCore"),
            brackets=self._brackets(section.get("brackets"), (key, "brackets"), parse),
            small_below=small.get("below"),
            small_amount=small.get("reserve", ZERO),
            size_rounding=size_rounding,
            bracket_rounding=bracket_rounding,
            rounding=rounding,
        )

    def _brackets(self, value: Any, path: Path, parse: Parse) -> tuple[Bracket, ...]:
        fields: dict[str, Parse] = {"upTo": parse, "percent": _parse_share, "widthBeyond": parse, "countedFrom": parse}
        brackets: list[Bracket] = []
        low: Fraction | None = ZERO
        for index, item in enumerate(self._items(value, path)):
            values = self.read_values(self.read_mapping(item, (*path, index), fields), (*path, index), fields)
            end = values.get("upTo")
            if "percent" not in values and not self.mistakes:
                self.add_mistake(InvalidValue((*path, index, "percent"), "a percentage from 0 to 100", "none"))
            if low is None or (end is not None and end <= low):
                self.add_mistake(
                    InvalidValue(
                        (*path, index),
                        "brackets in ascending order, and only the last one without upTo",
                        "a bracket that begins after its end",
                    )
                )
                break
            brackets.append(
                Bracket(
                    up_to=end,
                    share=values.get("percent", ZERO),
                    width_beyond=values.get("widthBeyond"),
                    counted_from=values.get("countedFrom"),
                )
            )
            low = end
        return tuple(brackets)

    def _rounding(self, section: Mapping[str, Any], key: str, parse: Parse, path: Path) -> Rounding | None:
        fields = {"to": parse, "direction": one_of(Direction).parse}
        values = self._known_fields(section, key, fields, path)
        if key not in section or self.mistakes:
            return None
        if len(values) < len(fields) or not values["to"]:
            self.add_mistake(InvalidValue((*path, key), "`to` with an amount above 0, and `direction`", "less"))
            return None
        return Rounding(values["to"], values["direction"])

    def _disk_rule(self, profile: Mapping[str, Any]) -> DiskRule | None:
        path: Path = ("ephemeralStorage",)
        section = self.read_mapping(profile.get("ephemeralStorage"), path, ("smallestOf", "localDisks"))
        fields = {"base": _parse_memory, "percent": _parse_share}
        amounts = []
        for index, item in enumerate(self._items(section.get("smallestOf"), (*path, "smallestOf"))):
            place = (*path, "smallestOf", index)
            values = self.read_values(self.read_mapping(item, place, fields), place, fields)
            amounts.append((values.get("base", ZERO), values.get("percent", ZERO)))
        local: list[Fraction] = []
        for index, item in enumerate(self._items(section.get("localDisks"), (*path, "localDisks"))):
            local += self.read_values({index: item}, (*path, "localDisks"), {index: _parse_memory}).values()
        if section and not amounts:
            self.add_mistake(InvalidValue((*path, "smallestOf"), "a list of amounts, at least one", "none"))
        return DiskRule(smallest_of=tuple(amounts), local_disks=tuple(local)) if amounts else None

    def _loss_rule(self, profile: Mapping[str, Any]) -> LossRule | None:
        fields: dict[str, Parse] = {"percent": _parse_share, "arm64": _parse_memory}
        section = self.read_mapping(profile.get("loss"), ("loss",), (*fields, "round"))
        if not section:
            return None
        values = self.read_values(section, ("loss",), fields)
        rounding = self._rounding(section, "round", _parse_memory, ("loss",))
        return LossRule(share=values.get("percent", ZERO), arm64=values.get("arm64", ZERO), rounding=rounding)

    def _known_fields(
        self, section: Mapping[str, Any], key: str, fields: Mapping[str, Parse], path: Path = ()
    ) -> dict[str, Any]:
        place = (*path, key)
        return self.read_values(self.read_mapping(section.get(key), place, fields), place, fields)

    def _items(self, value: Any, path: Path) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > MAX_MISTAKES:
            self.add_mistake(InvalidValue(path, f"a list of at most {MAX_MISTAKES}", quote_value(value)))
            return []
        return value


_PARSE_BY_RESOURCE: Mapping[str, Parse] = {"memory": _parse_memory, "cpu": _parse_cpu}
