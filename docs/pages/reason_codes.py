"""The reason codes of the product: what its modules declare, read from the modules themselves."""

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from types import ModuleType

import trimtab
from trimtab.cluster.reason import Code


@cache
def product_codes() -> tuple[Code, ...]:
    """Every code that a module `reasons` of the product declares, sorted by name: no other module declares one."""
    names = [module.name for module in pkgutil.walk_packages(trimtab.__path__, "trimtab.")]
    return declared_codes(importlib.import_module(name) for name in names if name.endswith(".reasons"))


def declared_codes(modules: Iterable[ModuleType]) -> tuple[Code, ...]:
    """Every code that is a constant of one of the modules, sorted by name. Two different codes of one name are a
    ValueError."""
    codes: dict[str, Code] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Code) and codes.setdefault(value.name, value) != value:
                raise ValueError(f"the reason code {value.name} is declared again, in {module.__name__}")
    return tuple(codes[name] for name in sorted(codes))
