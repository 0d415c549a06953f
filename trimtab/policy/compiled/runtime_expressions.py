"""Writes the CEL expression that finds a language runtime which reads a limit of its container.

It searches for what shows a runtime, but not for the settings that make the runtime independent of the limit: a
compiled policy keeps a limit that the webhook would remove because of `-Xmx` (`differences`, `read-limit`).
"""

import re
from collections.abc import Iterable
from functools import cache

from trimtab.cluster.runtime_patterns import Runtime, TellingValue, TextPattern
from trimtab.cluster.runtime_signs import INJECTION_KEYS, NEGATIONS, VALUE_KEYS
from trimtab.cluster.runtimes import RUNTIMES
from trimtab.policy.cel import cel_list, cel_string


@cache
def runtime_reads(resource: str) -> str:
    """Returns a CEL expression that is true if a runtime that reads this limit shows itself in the container `c`: in
    its environment, its command line or its image, or in the pod's labels and annotations."""
    runtimes = [runtime for runtime in RUNTIMES if resource in runtime.reads]
    if not runtimes:
        return "false"
    names, texts = _regex(_name_patterns(runtimes)), _regex(_text_patterns(runtimes))
    programs, files = _regex(_script_patterns(runtimes)), _regex(_file_patterns(runtimes))
    started = _regex([f"^(.*/)?({_any(name for runtime in runtimes for name in runtime.programs)})[0-9.]*$"])
    telling = "".join(f" || {_telling_value(value)}" for runtime in runtimes for value in runtime.telling_values)
    env = (
        f"has(c.env) && c.env.exists(e, e.name.matches({names}) || (has(e.value) && e.value.matches({texts})){telling})"
    )
    line = f"t.matches({texts}) || t.matches({programs}) || t.matches({files})"
    command = f"has(c.command) && c.command.exists(t, {line} || t.matches({started}))"
    args = f"has(c.args) && c.args.exists(t, {line} || (has(c.command) && t.matches({started})))"
    image = f"has(c.image) && c.image.matches({_regex(_image_patterns(runtimes))})"
    return " || ".join(f"({part})" for part in (env, command, args, image, _marks(runtimes)))


def _telling_value(telling: TellingValue) -> str:
    pattern = cel_string(f"^({telling.expression})$")
    return f"(e.name == {cel_string(telling.variable)} && has(e.value) && e.value.matches({pattern}))"


def _regex(patterns: Iterable[str]) -> str:
    return cel_string("(?m)" + "|".join(patterns))


def _any(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in names)


def _text_patterns(runtimes: list[Runtime]) -> list[str]:
    patterns = [pattern for runtime in runtimes for pattern in (*runtime.limit_options, *runtime.options)]
    return [_expression_of(pattern) for pattern in patterns]


def _expression_of(pattern: TextPattern) -> str:
    return f"({pattern.expression or re.escape(pattern.literal)})"


def _name_patterns(runtimes: list[Runtime]) -> list[str]:
    general = [runtime.variable for runtime in runtimes if runtime.variable]
    # The cost of an expression grows with the length of its patterns: names that a general pattern finds are left out.
    usual = [
        name
        for runtime in runtimes
        for name in runtime.usual_variables
        if not any(re.search(pattern, name) for pattern in general)
    ]
    return [*general, f"^({_any(usual)})$"]


def _script_patterns(runtimes: list[Runtime]) -> list[str]:
    programs = _any(name for runtime in runtimes for name in runtime.programs)
    return [f"([;&|(]\\s*|^)(exec[ \\t]+)?([\\w.-]*/)*({programs})[0-9.]*[ \\t]+\\S"]


def _file_patterns(runtimes: list[Runtime]) -> list[str]:
    suffixes = _any(suffix for runtime in runtimes for suffix in runtime.files)
    return [f"(^|\\s)[^-=\\s][^=\\s]*[.]({suffixes})[\"';)]*(\\s|$)"]


def _image_patterns(runtimes: list[Runtime]) -> list[str]:
    words = _any(word for runtime in runtimes for word in runtime.words)
    images = [image for runtime in runtimes for image in runtime.images]
    official = [image.removeprefix("library/") for image in images if image.startswith("library/")]
    return [
        f"(?i)(^|[^A-Za-z])({words})([^A-Za-z]|$)",
        f"(?i)(^|/)({_any(images)})([:@]|$)",
        f"(?i)^([^/]*[.:][^/]*/)?({_any(official)})([:@]|$)",
    ]


def _marks(runtimes: list[Runtime]) -> str:
    """Returns a CEL expression for labels and annotations that name a runtime."""
    words = _any(word for runtime in runtimes for word in (*runtime.words, *runtime.label_words))
    word = f"(^|[^a-z])({words})([^a-z]|$)"
    by_value = cel_string(f"(^|/|[^a-z/])({_any(sorted(VALUE_KEYS))})([^a-z/]|$)")
    by_key = cel_string(f"(^|/|[^a-z/])({_any(sorted(INJECTION_KEYS))})([^a-z/]|$)")
    return " || ".join(
        f"(has({place}) && {place}.exists(k, (k.lowerAscii().matches({by_value}) && "
        f"{place}[k].lowerAscii().matches({cel_string(word)})) || (k.lowerAscii().matches({by_key}) && "
        f"k.lowerAscii().matches({cel_string(word)}) && !({place}[k].lowerAscii() in {cel_list(sorted(NEGATIONS))}))))"
        for place in ("object.metadata.labels", "object.metadata.annotations")
    )
