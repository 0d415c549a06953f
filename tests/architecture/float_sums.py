"""A plugin for mypy: the built-in `sum` adds no floats, `math.fsum` does.

Since Python 3.12 the built-in `sum` compensates the rounding errors of floats, and before it does not. So a total, and
a decision that compares totals, would differ between two Pythons. `math.fsum` is exact on each of them.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.errorcodes import ErrorCode
from mypy.maptype import map_instance_to_supertype
from mypy.plugin import FunctionSigContext, Plugin
from mypy.types import AnyType, FunctionLike, Instance, Type, TypeOfAny, UnionType, get_proper_type

FLOAT_SUM = ErrorCode("float-sum", "The built-in sum adds floats differently on two Pythons", "Trimtab")


class FloatSums(Plugin):
    """Reports every call of the built-in `sum` over values that may be floats."""

    def get_function_signature_hook(self, fullname: str) -> Callable[[FunctionSigContext], FunctionLike] | None:
        """Returns what judges a call of this function; None for all others."""
        return _judge_sum if fullname == "builtins.sum" else None


def _judge_sum(call: FunctionSigContext) -> FunctionLike:
    [summands] = call.args[0]
    if _may_be_float(_item_of(call.api.get_expression_type(summands), call)):
        call.api.fail(f"{FLOAT_SUM.description}: use math.fsum", summands, code=FLOAT_SUM)
    return call.default_signature


def _item_of(iterable: Type, call: FunctionSigContext) -> Type:
    """Returns the type of the items of an iterable; the type itself if it is none that is known."""
    proper = get_proper_type(iterable)
    if isinstance(proper, Instance) and proper.type.has_base("typing.Iterable"):
        base = call.api.named_generic_type("typing.Iterable", [AnyType(TypeOfAny.special_form)])
        return map_instance_to_supertype(proper, base.type).args[0]
    return iterable


def _may_be_float(item: Type) -> bool:
    """Returns whether a value of this type may be a float. A type that is not known is none."""
    proper = get_proper_type(item)
    if isinstance(proper, UnionType):
        return any(map(_may_be_float, proper.items))
    return isinstance(proper, Instance) and proper.type.fullname == "builtins.float"


def plugin(version: str) -> type[Plugin]:
    """Returns the plugin; mypy calls this with its own version."""
    return FloatSums
