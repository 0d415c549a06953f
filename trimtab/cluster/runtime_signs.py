"""Finds out which language runtime a container has, and which of its limits that runtime reads.

A JVM gives its heap a share of the memory limit. Without the limit, the share is one of the whole node. Which runtime a
container has, and whether a setting tells it a size, is visible in its environment variables, its command line, its
image and the pod's labels (`RUNTIMES`). Variables from ConfigMaps and Secrets, arguments in an image, and what a
program does by itself are not visible.

A sign (`RuntimeSign`) holds words of the table, never the container's own text. So it may be stored where the text may
not: environment variables and command lines can contain secrets.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Protocol

import msgspec

from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.bounded_cache import cache_short_strings
from trimtab.cluster.image_reference import split_registry
from trimtab.cluster.runtime_patterns import MEMORY, Runtime, SizeSetting, TextPattern
from trimtab.cluster.runtimes import RUNTIMES

MAX_CHARACTERS = 32 * 1024
"""The length of a variable's value, and of the command line, in characters. What follows is not read."""


SIGNS_FIELD = "trimtab.dev/runtimeSigns"
"""The field of a captured container that holds its signs."""


class RuntimeSign(ApiObject, frozen=True, kw_only=True):
    """What a container's environment, command line and image show of one runtime. It holds only words of Trimtab
    itself, none of the container's own text."""

    runtime: str = ""
    """The name of a row in `cluster.runtimes`."""
    shown_by: str = ""
    """What shows that the runtime is there; empty if only settings of the runtime are there."""
    frees: tuple[str, ...] = ()
    """The resources whose limits the runtime does not read, because a setting tells it a size."""


class Variable(Protocol):
    """An environment variable, as `api.pod.Env` has it."""

    @property
    def name(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def value_from(self) -> object | None:
        """Where the value comes from, if the pod does not contain it."""


@dataclass(frozen=True, slots=True)
class LimitReader:
    """What in a pod reads a container's limit."""

    name: str
    """The name of the runtime, or `the downward API`."""
    shown_by: str
    """What shows this."""
    without_limit: str = "the container would size itself by the whole node"
    """What would happen without the limit."""
    instead: str = "set a size that does not depend on it"
    """What makes the limit unnecessary."""

    def __str__(self) -> str:
        return f"{self.name} ({self.shown_by})"


@dataclass(frozen=True, slots=True)
class UnknownRuntime:
    """Says that neither the container nor the pod shows which runtime the container has."""


@dataclass(frozen=True, slots=True)
class IndependentRuntime:
    """A runtime that does not read the limit: by its nature, or because a setting tells it a size."""

    runtime: str


LimitUse = LimitReader | IndependentRuntime | UnknownRuntime


def find_limit_use(signs: Iterable[RuntimeSign], resource: str) -> LimitUse:
    """Returns whether a runtime with these signs reads the container's limit of this resource."""
    independent: IndependentRuntime | None = None
    for sign in signs:
        runtime = _RUNTIME_BY_NAME.get(sign.runtime)
        if runtime is None or not sign.shown_by:
            continue
        if resource in runtime.reads and resource not in sign.frees:
            return LimitReader(runtime.name, sign.shown_by)
        independent = independent or IndependentRuntime(runtime.name)
    return independent or UnknownRuntime()


def container_signs(text_signs: Iterable[RuntimeSign], image: str) -> tuple[RuntimeSign, ...]:
    """Returns the signs of a container itself, in the order of the table: those of its text (`read_text_signs`) and of
    its image."""
    return merge_signs((*text_signs, *image_signs(image)))


def add_label_signs(signs: tuple[RuntimeSign, ...], *mappings: Mapping[str, str]) -> tuple[RuntimeSign, ...]:
    """Returns the container's signs. If they show no runtime, those of the pod's labels and annotations are added."""
    if any(sign.shown_by for sign in signs):
        return signs
    return merge_signs((*signs, *(sign for mapping in mappings for sign in _label_signs(mapping))))


def read_text_signs(
    variables: Sequence[Variable], command: tuple[Any, ...], args: tuple[Any, ...]
) -> tuple[RuntimeSign, ...]:
    """Returns what a container's environment variables and command line show. Values that are no text show nothing."""
    # The replicas of a workload have the same text. Only a hash of it stays in memory.
    try:
        key = hashlib.blake2b(_encode((variables, command, args)), digest_size=16).digest()
    except (OverflowError, UnicodeError):
        return _find_text_signs(variables, command, args)
    signs = _signs_by_hash.get(key)
    if signs is None:
        if len(_signs_by_hash) >= _MAX_TEXTS:
            _signs_by_hash.clear()
        signs = _signs_by_hash[key] = _find_text_signs(variables, command, args)
    return signs


def _text_of(variable: Variable) -> str:
    return variable.value if isinstance(variable.value, str) else ""


def _texts_of(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple([value for value in values if isinstance(value, str)])


# `str` for what YAML may contain beside JSON's values.
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_MAX_TEXTS = 4096
_signs_by_hash: dict[bytes, tuple[RuntimeSign, ...]] = {}


def _find_text_signs(
    variables: Iterable[Variable], command: Iterable[Any], args: Iterable[Any]
) -> tuple[RuntimeSign, ...]:
    named = [variable for variable in variables if isinstance(variable.name, str)]
    command, args = _texts_of(command), _texts_of(args)
    findings = _TextFindings()
    _read_variables(named, findings)
    # Each argument is a line: `^` in a pattern is the beginning of an argument.
    line = "\n".join((*command, *args))[:MAX_CHARACTERS]
    texts = [(variable.name, text[:MAX_CHARACTERS]) for variable in named if (text := _text_of(variable))]
    _read_texts([*texts, ("", line)], findings)
    if line:
        _read_programs(command, args, line, findings)
    return findings.signs()


@cache_short_strings(max_length=512, max_entries=4096)
def image_signs(image: str) -> tuple[RuntimeSign, ...]:
    """Returns what the image's name and tag show."""
    name, _, _ = image.partition("@")
    parts = split_registry(name)[1].lower().split("/")
    base = parts[-1].partition(":")[0]
    paths = {base, f"{parts[-2] if len(parts) > 1 else 'library'}/{base}"}
    words = {word for part in parts for word in _WORD.findall(part)}
    signs = []
    for runtime in RUNTIMES:
        shown = next((image for image in runtime.images if image in paths), "") or next(
            (word for word in runtime.words if word in words), ""
        )
        if shown:
            signs.append(RuntimeSign(runtime=runtime.name, shown_by=f"{shown} in the image's name"))
    return tuple(signs)


@lru_cache(maxsize=4096)
def can_name_runtime(key: str) -> bool:
    """Returns whether a label or annotation with this key names a runtime or a language: by its value, such as
    `app.openshift.io/runtime`, or by the key itself, such as `instrumentation.opentelemetry.io/inject-java`."""
    words = _key_words(key)
    return bool(words & VALUE_KEYS) or (bool(words & INJECTION_KEYS) and bool(words & _ALL_LABEL_WORDS))


def is_runtime_word(text: str) -> bool:
    """Returns whether the text is the name of a runtime or a language, as labels have it."""
    return text in _ALL_LABEL_WORDS


_WORD = re.compile(r"[a-z]+")
VALUE_KEYS = frozenset({"runtime", "language", "lang", "framework"})
"""Words in keys whose value is the name of a runtime or a language."""
INJECTION_KEYS = frozenset({"inject", "lib"})
"""Words in keys of operators that add an agent for a language: OpenTelemetry's `inject-java`, Datadog's
`java-lib.version`."""
NEGATIONS = frozenset({"false", "no", "off"})
"""Values with which a key of `INJECTION_KEYS` adds nothing."""
_RUNTIME_BY_NAME = {runtime.name: runtime for runtime in RUNTIMES}
_ALL_LABEL_WORDS = frozenset(word for runtime in RUNTIMES for word in (*runtime.words, *runtime.label_words))


def _key_words(key: str) -> set[str]:
    return set(_WORD.findall(key.rpartition("/")[2].lower()))


def _label_signs(labels: Mapping[str, str]) -> Iterator[RuntimeSign]:
    for key in labels:
        if not can_name_runtime(key):
            continue
        value, key_words = labels.get(key, "").lower(), _key_words(key)
        if value in NEGATIONS:
            continue
        words = set(_WORD.findall(value)) if key_words & VALUE_KEYS else set()
        words |= key_words if key_words & INJECTION_KEYS else set()
        for runtime in RUNTIMES:
            shown = next((word for word in (*runtime.words, *runtime.label_words) if word in words), "")
            if shown:
                yield RuntimeSign(runtime=runtime.name, shown_by=f"{shown} in a label or annotation of the pod")


def merge_signs(signs: Iterable[RuntimeSign]) -> tuple[RuntimeSign, ...]:
    """Returns one sign for each runtime, in the order of the table. Of several things that show a runtime, the first is
    named."""
    merged: dict[str, RuntimeSign] = {}
    for sign in signs:
        first = merged.get(sign.runtime)
        merged[sign.runtime] = (
            sign
            if first is None
            else RuntimeSign(
                runtime=sign.runtime,
                shown_by=first.shown_by or sign.shown_by,
                frees=tuple(sorted({*first.frees, *sign.frees})),
            )
        )
    return tuple([merged[runtime.name] for runtime in RUNTIMES if runtime.name in merged])


_LIMIT_OPTION, _USUAL_VARIABLE, _VARIABLE, _OPTION, _PROGRAM, _FILE = range(6)
"""The ranks of what shows a runtime: the lowest is named."""


class _TextFindings:
    """What has been found in a container's text, by the names of runtimes."""

    __slots__ = ("frees", "overridden", "shown")

    def __init__(self) -> None:
        self.shown: dict[str, tuple[int, str]] = {}
        self.frees: dict[str, set[str]] = {}
        self.overridden: set[str] = set()

    def add_shown(self, runtime: str, rank: int, shown_by: str) -> None:
        """Notes what shows the runtime, unless something of a lower or the same rank does."""
        if runtime not in self.shown or rank < self.shown[runtime][0]:
            self.shown[runtime] = rank, shown_by

    def add_freed(self, runtime: str, resources: Iterable[str]) -> None:
        """Notes that a setting of the runtime makes it independent of these limits."""
        self.frees.setdefault(runtime, set()).update(resources)

    def signs(self) -> tuple[RuntimeSign, ...]:
        """Returns one sign for each runtime, in the order of the table."""
        return tuple(
            [
                RuntimeSign(
                    runtime=runtime.name,
                    shown_by=self.shown.get(runtime.name, (0, ""))[1],
                    frees=tuple(sorted(self.frees.get(runtime.name, set()) - self._read_anyway(runtime.name))),
                )
                for runtime in RUNTIMES
                if runtime.name in self.shown or runtime.name in self.frees
            ]
        )

    def _read_anyway(self, runtime: str) -> set[str]:
        return {MEMORY} if runtime in self.overridden else set()


def _read_variables(variables: Iterable[Variable], findings: _TextFindings) -> None:
    for variable in variables:
        use = _variable_use(variable.name)
        for runtime, is_usual in use.shown:
            if is_usual:
                findings.add_shown(runtime, _USUAL_VARIABLE, f"the variable {variable.name}")
            else:
                findings.add_shown(runtime, _VARIABLE, "an environment variable")
        for runtime, value in use.telling_values:
            if value.fullmatch(_text_of(variable)) is not None:
                findings.add_shown(runtime, _USUAL_VARIABLE, f"the value of the variable {variable.name}")
        for runtime, setting, value in use.settings:
            frees = (
                value.fullmatch(_text_of(variable)) is not None if variable.value_from is None else setting.frees_unseen
            )
            if frees:
                findings.add_freed(runtime, setting.frees)


@dataclass(frozen=True, slots=True)
class _VariableUse:
    """What the name of a variable shows."""

    shown: tuple[tuple[str, bool], ...]
    """(name of the runtime, whether messages name the variable)."""
    settings: tuple[tuple[str, SizeSetting, re.Pattern[str]], ...]
    """(name of the runtime, setting, pattern of the value)."""
    telling_values: tuple[tuple[str, re.Pattern[str]], ...]
    """(name of the runtime, pattern of the value that shows it)."""


@cache_short_strings(max_length=128, max_entries=4096)
def _variable_use(name: str) -> _VariableUse:
    shown = [
        (runtime.name, name in runtime.usual_variables)
        for runtime in RUNTIMES
        if name in runtime.usual_variables or (runtime.variable and re.search(runtime.variable, name))
    ]
    settings = [
        (runtime.name, setting, re.compile(setting.value, re.DOTALL))
        for runtime in RUNTIMES
        for setting in runtime.settings
        if setting.variable and re.fullmatch(setting.variable, name)
    ]
    telling_values = [
        (runtime.name, re.compile(telling.expression, re.DOTALL))
        for runtime in RUNTIMES
        for telling in runtime.telling_values
        if telling.variable == name
    ]
    return _VariableUse(tuple(shown), tuple(settings), tuple(telling_values))


def _read_texts(texts: list[tuple[str, str]], findings: _TextFindings) -> None:
    """Searches (name of a variable or "" for the command line, text) for all patterns of the table."""
    # Nearly no text contains any literal: they are all searched together.
    whole = "\n".join([text for _, text in texts])
    # A pattern with several literals is searched only once in a text.
    searched: set[tuple[int, int]] = set()
    for literal, searches in _SEARCHES.items():
        if literal not in whole:
            continue
        for index, (name, text) in enumerate(texts):
            if literal in text:
                for search in searches:
                    if (key := (index, id(search))) not in searched:
                        searched.add(key)
                        search.read_text(name, text, findings)


@dataclass(frozen=True, slots=True)
class _Search:
    """A pattern of the table, and what a match means."""

    runtime: Runtime
    expression: str
    rank: int | None = None
    """The rank with which a match shows the runtime."""
    setting: SizeSetting | None = None
    overrides: bool = False

    def read_text(self, variable: str, text: str, findings: _TextFindings) -> None:
        """Notes what a match in the text means."""
        match = _compile_search(self.expression).search(text)
        if match is None:
            return
        name = self.runtime.name
        if self.rank is not None:
            option = match[0].strip(_AROUND_OPTIONS) if self.rank == _LIMIT_OPTION else "an option"
            findings.add_shown(name, self.rank, f"{option} in {_place_of(variable, self.runtime)}")
        if self.setting is not None:
            findings.add_freed(name, self.setting.frees)
        if self.overrides:
            findings.overridden.add(name)


_AROUND_OPTIONS = "=:,;\"'()[]{} \t\n"
"""What may be before and after an option that a pattern matches."""


# Most processes search no text, and the others few literals: a compiled table would delay the start of each of them.
@cache
def _compile_search(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.MULTILINE)


def _place_of(variable: str, runtime: Runtime) -> str:
    if not variable:
        return "the command line"
    # Only names of the table: the names of other variables are the author's text.
    return variable if variable in runtime.usual_variables else "an environment variable"


def _all_searches() -> dict[str, list[_Search]]:
    """Returns the patterns of the table by their literals."""
    searches: dict[str, list[_Search]] = {}

    def add(pattern: TextPattern, runtime: Runtime, **meaning: Any) -> None:
        expression = pattern.expression or re.escape(pattern.literal)
        search = _Search(runtime, expression, **meaning)
        for literal in pattern.literals:
            searches.setdefault(literal, []).append(search)

    for runtime in RUNTIMES:
        for pattern in runtime.limit_options:
            add(pattern, runtime, rank=_LIMIT_OPTION)
        for pattern in runtime.options:
            add(pattern, runtime, rank=_OPTION)
        for pattern in runtime.overriding_options:
            add(pattern, runtime, overrides=True)
        for setting in runtime.settings:
            for pattern in setting.options:
                add(pattern, runtime, setting=setting)
    return searches


_SEARCHES = _all_searches()
_RUNTIMES_BY_PROGRAM: dict[str, list[str]] = {}
for _runtime in RUNTIMES:
    for _program in _runtime.programs:
        _RUNTIMES_BY_PROGRAM.setdefault(_program, []).append(_runtime.name)
_RUNTIME_BY_FILE = {suffix: runtime.name for runtime in RUNTIMES for suffix in runtime.files}
_STARTED = re.compile(r"(?:[;&|(]\s*|^)(?:exec[ \t]+)?([\w./-]+)[ \t]+\S", re.MULTILINE)
"""What a shell starts: the first word of an argument with several words, and words after `&&`, `;`, `|` and `exec`."""


def _read_programs(command: tuple[str, ...], args: tuple[str, ...], line: str, findings: _TextFindings) -> None:
    # An entrypoint may be a wrapper such as `tini --`. Arguments alone are those of the image's own program.
    started = [*command, *args[:1]] if command else []
    started += [match[1] for match in _STARTED.finditer(line)]
    for word in started:
        # The name of a program without its path and version: `java` for `/usr/bin/java`, `python` for `python3.12`.
        name = word.rpartition("/")[2][:64]
        program = name.rstrip("0123456789.") or name
        for runtime in _RUNTIMES_BY_PROGRAM.get(program, ()):
            findings.add_shown(runtime, _PROGRAM, f"the program {program} in the command line")
    for word in line.split():
        suffix = word.rstrip("\"';)").rpartition(".")[2]
        if suffix in _RUNTIME_BY_FILE and not word.startswith("-") and "=" not in word:
            findings.add_shown(_RUNTIME_BY_FILE[suffix], _FILE, f"a file with the suffix .{suffix} in the command line")
