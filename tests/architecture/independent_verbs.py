"""Two import-linter contracts: no verb of the command imports another one, and nothing outside of an extra imports what
only the extra has. Which verbs and extras there are, `VERBS` and `EXTRAS` alone say."""

from grimp import ImportGraph
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.domain import fields
from importlinter.domain.contract import ContractCheck

from trimtab.cli.main import EXTRAS, VERBS


class IndependentVerbsContract(IndependenceContract):
    """Like `independence`, for the modules of all verbs. A verb is a package or one file."""

    type_name = "independent_verbs"
    modules = fields.SetField(subfield=fields.ModuleExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        expression = fields.ModuleExpressionField()
        self.modules = {expression.parse(module.removesuffix(".command")) for module, _ in VERBS.values()}
        return super().check(graph, verbose)


EXTRA_PACKAGES = {
    *(VERBS[verb][0].removesuffix(".command") for verbs in EXTRAS.values() for verb in verbs),
    "trimtab.idle",
    "trimtab.fleet",
    "trimtab.inputs.fleet_clusters",
}
"""What an installation without extras may lack."""


class CoreWithoutExtrasContract(ForbiddenContract):
    """Like `forbidden`, from every other module to the packages of the extras."""

    type_name = "core_without_extras"
    source_modules = fields.ListField(subfield=fields.ModuleExpressionField(), required=False)
    forbidden_modules = fields.ListField(subfield=fields.ModuleExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        expression = fields.ModuleExpressionField()
        extras = EXTRA_PACKAGES | {name for package in EXTRA_PACKAGES for name in graph.find_descendants(package)}
        above = {
            package.rsplit(".", count)[0] for package in EXTRA_PACKAGES for count in range(1, package.count(".") + 1)
        }
        own = {name for name in graph.modules if name.split(".")[0] in ("trimtab", "webhook", "policies", "certs")}
        self.source_modules = [expression.parse(name) for name in sorted(own - extras - above)]
        self.forbidden_modules = [expression.parse(name) for name in sorted(EXTRA_PACKAGES)]
        return super().check(graph, verbose)
