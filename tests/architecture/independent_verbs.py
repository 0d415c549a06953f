"""An import-linter contract: no verb of the command imports another one. Which verbs there are, `VERBS` alone says."""

from grimp import ImportGraph
from importlinter.contracts.independence import IndependenceContract
from importlinter.domain import fields
from importlinter.domain.contract import ContractCheck

from trimtab.cli.main import VERBS


class IndependentVerbsContract(IndependenceContract):
    """Like `independence`, for the modules of all verbs. A verb is a package or one file."""

    type_name = "independent_verbs"
    modules = fields.SetField(subfield=fields.ModuleExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        expression = fields.ModuleExpressionField()
        self.modules = {expression.parse(module.removesuffix(".command")) for module, _ in VERBS.values()}
        return super().check(graph, verbose)
