"""The subcommand `trimtab policies compile`: policies as documents that the API server evaluates itself."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import click

from trimtab.cli import output
from trimtab.cli.main import EXIT_FOUND
from trimtab.cli.options import takes
from trimtab.cli.print_text import print_text
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import join_first
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.given_policies import load_given_policies
from trimtab.inputs.option import Argument, option
from trimtab.metricsapi.rules import is_namespace_name
from trimtab.policy.cel import Manifest
from trimtab.policy.compiled.differences import DIFFERENCES, list_differences
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy, find_conflicts
from trimtab.policy.podpolicy import PodPolicy
from trimtab.policy.required_action_rules import required_actions
from trimtab.policy.validating_policy import compile_validating_policy

_MAX_NAMES = 3
"""The maximum number of policies that one difference names."""
Target = Literal["validatingadmissionpolicy", "mutatingadmissionpolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """The options of `trimtab policies compile`."""

    paths: Annotated[tuple[str, ...], Argument("[PATH]...", is_required=False)] = ()
    target: Annotated[Target, option("--to", help="The kind of object to print.", is_required=True)]
    enforce: Annotated[
        bool,
        option(
            "--enforce",
            help="Also deny pods that violate a required action. Without this option the binding only warns and "
            "audits.",
        ),
    ] = False
    parameters: Annotated[
        Literal["usage"] | None,
        option(
            "--params",
            help="Read requests from the ConfigMap trimtab-requests of the pod's namespace, which the recommender "
            "writes from usage.",
        ),
    ] = None
    parameters_namespace: Annotated[
        str,
        option(
            "--params-namespace",
            metavar="NAMESPACE",
            help="Read the same from the ConfigMaps trimtab-requests.NAMESPACE in this namespace of Trimtab, where no "
            "tenant writes. The policies may then replace requests (`when: always`).",
        ),
    ] = ""
    output_file: Annotated[str | None, output.OUTPUT_FILE] = None


@click.command("compile")
@takes(CompileOptions)
def compile_policies(options: CompileOptions) -> None:
    """Print policies as documents that the API server evaluates itself. The command applies nothing.

    With `mutatingadmissionpolicy` (Kubernetes 1.36): a MutatingAdmissionPolicy and its binding for each policy, which
    change pods without a webhook. With `validatingadmissionpolicy`: one for each policy with a required action; if the
    output of `--enforce` is applied, a pod that the webhook could not change because it was down is denied.

    Exits with 1 if CEL cannot express a policy; the report names the field and the reason. It also names each case in
    which a MutatingAdmissionPolicy changes a pod otherwise than the webhook would.
    """
    paths, output_file, parameters = options.paths, options.output_file, options.parameters
    if options.parameters_namespace and not is_namespace_name(options.parameters_namespace):
        expected = "--params-namespace: the name of a namespace, such as trimtab-system"
        raise UsageError([ConfigError(file="command line", expected=expected, got=options.parameters_namespace)])
    policies = load_given_policies(paths).all
    if options.target == "validatingadmissionpolicy":
        _reject_option("--params", parameters is not None)
        _reject_option("--params-namespace", bool(options.parameters_namespace))
        _print_validations(policies, paths, output_file, enforce=options.enforce)
    else:
        _reject_option("--enforce", options.enforce)
        _print_mutations(policies, output_file, parameters is not None, options.parameters_namespace)


def _reject_option(option: str, is_set: bool) -> None:
    if is_set:
        raise UsageError(
            [
                ConfigError(
                    file="command line", expected=f"{option} with a value of --to that does not allow it", got=option
                )
            ]
        )


def _print_validations(
    policies: Sequence[PodPolicy], paths: tuple[str, ...], output_file: str | None, *, enforce: bool
) -> None:
    requiring = [policy for policy in policies if required_actions(policy.spec.actions)]
    if not requiring:
        raise UsageError(
            [ConfigError(file=", ".join(paths) or "PATH", expected="a policy with a required action", got="none")]
        )
    compiled = [compile_validating_policy(policy, enforce=enforce) for policy in requiring]
    _print_manifests([manifest for one in compiled for manifest in one.manifests], output_file)
    _exit_with([(one.policy, one.problem) for one in compiled if one.problem])


def _print_mutations(
    policies: Sequence[PodPolicy], output_file: str | None, with_parameters: bool, parameters_namespace: str
) -> None:
    compiled = [
        compile_mutating_policy(
            policy,
            policies,
            with_parameters=with_parameters or bool(parameters_namespace),
            parameters_namespace=parameters_namespace,
        )
        for policy in policies
    ]
    _print_manifests([manifest for one in compiled for manifest in one.manifests], output_file)
    for one in compiled:
        if one.note:
            print_text(f"{one.policy}: {one.note}", err=True)
    carried = {one.policy for one in compiled if one.manifests}
    for sentence in find_conflicts([policy for policy in policies if policy.name in carried]):
        print_text(f"! {sentence}", err=True)
    _print_differences([policy for policy in policies if policy.name in carried])
    _exit_with([(one.policy, one.problem) for one in compiled if one.problem])


def _print_differences(policies: Sequence[PodPolicy]) -> None:
    """Prints what the compiled policies do otherwise than the webhook, and which of them."""
    differences = {policy.name: list_differences(policy) for policy in policies}
    if differences:
        print_text("The webhook would do otherwise in these cases (docs/explanation/without-a-webhook.md):", err=True)
    for difference in DIFFERENCES:
        names = [name for name, of_policy in differences.items() if difference in of_policy]
        if names:
            print_text(f"{difference.code} ({join_first(tuple(names), _MAX_NAMES)}): {difference.sentence}", err=True)


def _print_manifests(manifests: Sequence[Manifest], output_file: str | None) -> None:
    if manifests:
        output.write_text(output.format_yaml(*manifests, width=1000), output_file)


def _exit_with(problems: Sequence[tuple[str, str]]) -> None:
    for policy, problem in problems:
        print_text(f"Policy {policy} cannot be expressed in CEL: {problem}", err=True)
    if problems:
        sys.exit(EXIT_FOUND)
