"""The reason codes of the product: what its modules declare, read from the modules themselves."""

from collections.abc import Iterable
from functools import cache
from types import ModuleType

import trimtab
from docs.pages.product_modules import import_modules
from trimtab.cluster.reason import Code


@cache
def product_codes() -> tuple[Code, ...]:
    """Every code that a module of the product declares, sorted by name."""
    return declared_codes(import_modules(trimtab))


def declared_codes(modules: Iterable[ModuleType]) -> tuple[Code, ...]:
    """Every code that is a constant of one of the modules, sorted by name. Two different codes of one name are a
    ValueError."""
    codes: dict[str, Code] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Code) and codes.setdefault(value.name, value) != value:
                raise ValueError(f"the reason code {value.name} is declared again, in {module.__name__}")
    return tuple(codes[name] for name in sorted(codes))
