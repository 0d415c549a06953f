"""The tests behind each line of the threat model: what an actor must not get, and what mitigates a threat."""

_ADVERSARY = "tests/e2e/adversary"
_TENANT, _KUBELET, _TOKENS = (f"{_ADVERSARY}/test_{who}.py" for who in ("tenant", "kubelet", "stolen_tokens"))
_FORGED = f"{_ADVERSARY}/test_forged_drains.py"
_ORDERS = f"{_ADVERSARY}/test_forged_orders.py"
_OWNERS = f"{_ADVERSARY}/test_forged_owners.py"
_FIELDS = f"{_ADVERSARY}/test_every_field.py::test_a_token_changes_no_field_but_those_that_its_policy_names"
_MARKER = f"{_ADVERSARY}/test_forged_marker.py"
_HOSTILE = "tests/webhook/test_hostile.py"
_SCRAPER = "tests/metricsapi/test_scraper.py"

_LEASE = f"{_TOKENS}::test_a_token_takes_no_other_process_lease"
_WRITES = f"{_TOKENS}::test_a_token_writes_no_config_map_of_another_process_or_person"
_LABELS = f"{_TOKENS}::test_a_token_labels_nothing_so_that_another_process_reads_it"
_READS = f"{_TOKENS}::test_a_token_reads_no_config_map_and_no_secret_of_others"
_BOUNDS = "tests/policy/test_poisoned_usage.py::test_whatever_usage_says_a_request_stays_between_min_and_max"

WHO: dict[str, dict[str, tuple[str, ...]]] = {
    "a tenant": {
        "the settings of another namespace, or a larger share": (
            f"{_TENANT}::test_a_tenants_pod_gets_nothing_that_is_another_namespaces",
            f"{_TENANT}::test_a_tenant_writes_nothing_that_any_process_reads_as_settings",
        ),
        "so much of the webhook's time that other pods are not changed": (
            f"{_TENANT}::test_no_pod_of_a_tenant_takes_the_webhook_away_from_others",
            "tests/property/test_costs.py::test_a_review_costs_no_more_than_in_proportion_to_the_pod",
            "tests/property/test_costs.py"
            "::test_what_a_tenant_writes_around_a_pod_is_looked_through_once_and_not_for_each_review",
        ),
        "the webhook's probes": (
            f"{_TENANT}::test_a_tenants_config_maps_are_no_pools_and_stop_no_probe",
            "tests/webhook/test_asgi.py::test_a_probe_is_answered_while_every_check_that_may_wait_does",
        ),
        "a pod without an action that is `required`": (
            "tests/policy/test_required_actions.py::test_what_the_author_chooses_exempts_no_pod",
            "tests/policy/test_required_actions.py::test_a_contradiction_denies",
            "tests/policy/test_required_actions.py::test_an_author_who_opts_out_is_denied_and_told",
            f"{_MARKER}::test_an_author_who_opts_out_of_a_required_action_is_denied",
            f"{_MARKER}::test_a_tree_of_managed_fields_is_no_way_past_a_required_action",
        ),
        "a record signed by Trimtab of values that they wrote themselves": (
            "tests/policy/test_marker.py::test_a_forged_marker_keeps_no_pod_from_its_class",
            "tests/policy/test_marker.py::test_a_forged_marker_goes_where_nothing_else_changes",
            f"{_MARKER}::test_a_bare_pod_with_a_forged_marker_gets_its_class",
            f"{_MARKER}::test_a_template_of_a_stateful_set_with_a_forged_marker_gets_its_class",
        ),
        "a pool of their own, or the end of another pool": (
            f"{_TENANT}::test_a_tenants_config_maps_are_no_pools_and_stop_no_probe",
            "tests/compactor/test_cluster_reader.py::test_of_config_maps_only_ours_and_the_autoscalers_are_asked_for",
            "tests/compaction/drain/test_state_machine.py"
            "::test_a_successor_that_nobody_can_create_ends_a_drain_at_once_and_says_why",
        ),
        "the parameters of another namespace": (
            "tests/e2e/test_request_parameters.py"
            "::test_only_the_recommender_writes_parameters_and_pods_get_them_without_any_process",
            "tests/e2e/test_compiled_policies.py::test_no_parameters_of_a_tenant_refuse_a_pod_or_break_the_server",
            "tests/recommender/test_parameter_writer.py"
            "::test_a_namespace_that_refuses_the_config_map_ends_no_other_namespaces_parameters",
        ),
    },
    "a kubelet": {
        "a workload scaled by Trimtab": (
            f"{_FORGED}::test_a_kubelet_that_forges_a_note_scales_nothing_and_opens_nothing",
            "tests/compactor/test_forged.py::test_a_forged_note_scales_nothing_opens_nothing_and_is_told_of_once",
        ),
        "a node uncordoned that another client cordoned, by an annotation that Trimtab did not sign for it": (
            f"{_FORGED}::test_a_kubelet_that_forges_a_note_scales_nothing_and_opens_nothing",
            "tests/compactor/test_forged.py::test_a_note_copied_from_another_node_is_left_alone",
        ),
        "a write to another node": (f"{_KUBELET}::test_a_kubelet_writes_on_no_node_but_its_own",),
        "the compactor's time, or its end": (
            "tests/property/test_note_laws.py"
            "::test_a_round_of_the_compactor_costs_no_more_than_in_proportion_to_what_stands_on_a_node",
            "tests/property/test_note_laws.py"
            "::test_no_annotation_makes_whoever_reads_it_fail_and_none_is_ours_without_our_key",
        ),
        "a pool closed, or state of pools that do not exist": (
            f"{_FORGED}::test_notes_of_invented_pools_make_no_state",
            "tests/compactor/test_forged.py::test_forged_notes_close_no_pool_and_hold_no_drain_up",
            f"{_KUBELET}::test_a_kubelet_writes_no_pool_no_state_and_no_lease",
        ),
        "Trimtab's keys": (f"{_KUBELET}::test_a_kubelet_reads_no_key_and_no_settings_of_ours",),
    },
    "the author of PodPolicies": {
        "images, commands, volumes and service accounts, which no action changes": (
            "tests/property/test_decisions.py::test_what_runs_in_a_pod_and_as_whom_is_no_policys_to_change",
        )
    },
    "the author of pools in Trimtab's namespace": {
        "evictions that violate a disruption budget": (
            "tests/e2e/test_compactor.py::test_thirty_nodes_become_what_was_planned_and_no_budget_is_broken",
            "tests/e2e/test_compactor_ends.py::test_a_budget_that_closes_midway_is_waited_for_and_then_given_up",
        )
    },
    "a client in the pod network": {
        "a change of anything": (
            "tests/webhook/test_known_clients.py::test_nobody_else_is",
            f"{_HOSTILE}::test_what_no_api_server_sends_is_refused_and_its_connection_ends",
        ),
        "unlimited memory": (
            f"{_HOSTILE}::test_ninety_connections_that_fall_silent_hold_little_memory",
            f"{_HOSTILE}::test_requests_whose_answers_lie_take_little_memory",
        ),
        "unlimited time": (
            f"{_HOSTILE}::test_six_megabytes_of_chunks_of_one_byte_stop_nobody",
            f"{_HOSTILE}::test_one_address_has_its_own_share_of_connections_handshakes_included",
            f"{_HOSTILE}::test_who_asks_for_another_handshake_on_its_connection_gets_none",
        ),
    },
    "the author of a pod that the metrics API scrapes": {
        "the time of other pods' scrapes": (
            f"{_SCRAPER}::test_no_pod_spends_the_processor_of_all_scrapes",
            "tests/metricsapi/test_exposition.py::test_spaces_before_a_name_cost_no_more_than_other_bytes",
            "tests/metricsapi/test_exposition.py::test_a_body_of_nothing_but_one_series_is_not_read_to_its_end",
            "tests/metricsapi/test_collector.py::test_a_replica_does_not_wait_for_a_pod_that_hangs_and_stays_ready",
        ),
        "a metric of another pod": (
            "tests/metricsapi/test_collector.py::test_a_pod_of_the_same_name_is_another_pod",
            "tests/e2e/test_metrics_api.py::test_a_tenant_with_rights_in_one_namespace_has_them_there_only",
        ),
        "a bearer token for another namespace": (
            "tests/metricsapi/test_targets.py"
            "::test_a_token_goes_only_to_the_namespaces_that_it_names_whatever_a_pod_is_labelled",
        ),
    },
    "the operator of the metrics source": {"requests outside a policy's `min` and `max`": (_BOUNDS,)},
    "the holder of the webhook's token": {
        "a webhook configuration that sends requests elsewhere": (
            "tests/e2e/test_stolen_account.py::test_the_account_may_not_call_us_otherwise",
            _FIELDS,
        ),
        "the end of a webhook configuration": (f"{_OWNERS}::test_the_webhooks_token_gives_its_configuration_no_owner",),
        "the Secrets of others": (_READS, "tests/e2e/test_rights.py::test_tried_with_its_own_token_it_is_refused"),
    },
    "the holder of the watchdog's token": {
        "the Lease of another process": (_LEASE,),
        "ConfigMaps of any kind": (f"{_TOKENS}::test_the_watchdogs_token_writes_no_config_map",),
        "the spec of a PodPolicy": (f"{_TOKENS}::test_the_watchdogs_token_changes_no_spec_of_a_policy", _FIELDS),
    },
    "the holder of the compactor's token": {
        "the Lease of another process": (_LEASE,),
        "pools and recommendations": (_WRITES, _LABELS),
        "evictions that violate a disruption budget": (
            f"{_TOKENS}::test_the_compactors_token_changes_nothing_of_a_node_that_evicts_or_attracts_pods",
            _FIELDS,
        ),
        "the deletion of a node": (f"{_OWNERS}::test_the_compactors_token_gives_a_node_no_owner",),
        "ConfigMaps of others": (
            _READS,
            f"{_TOKENS}::test_the_compactor_reads_the_autoscalers_status_by_its_name_alone",
        ),
    },
    "the holder of the recommender's token": {
        "the Lease of another process": (_LEASE,),
        "pools, the compactor's state, and so a step of the compactor": (_WRITES, _LABELS),
        "the status of a VPA that does not name `trimtab` alone, and the spec of any VPA": (
            f"{_TOKENS}::test_the_recommenders_token_changes_no_vpa_that_does_not_name_us_and_no_spec",
            _FIELDS,
        ),
        "requests outside a policy's `min` and `max`": (_BOUNDS,),
    },
    "the holder of the metrics API's token": {
        "another server for the metrics": (
            "tests/e2e/test_metrics_api.py::test_the_stored_ca_bundle_is_the_only_field_that_the_account_may_change",
        ),
        "the Secrets of others": (
            "tests/docs/test_threat_model.py::test_no_role_has_a_wildcard_or_what_the_page_says_no_role_has",
        ),
    },
}
"""Actor, as the table's first words → what they must not get → the tests that try to get it."""

WHAT: dict[str, tuple[str, ...]] = {
    "the webhook is down, slow or wrong": (
        "tests/e2e/test_outages.py::test_killed_every_pod_is_created_and_exactly_those_are_told",
        "tests/e2e/test_outages.py::test_hung_every_pod_is_created_when_the_server_gives_up",
        "tests/admission/test_required_answers.py"
        "::test_an_error_of_ours_denies_where_something_may_be_required_and_nowhere_else",
    ),
    "a policy that harms": ("tests/e2e/test_watchdog.py::test_a_policy_that_has_pods_killed_is_set_to_warn",),
    "a malicious review": (
        "tests/property/test_costs.py::test_a_review_costs_no_more_than_in_proportion_to_the_pod",
        "tests/webhook/test_fuzz.py::test_no_damaged_review_blocks_a_pod_or_shows_a_traceback",
        f"{_TENANT}::test_no_pod_of_a_tenant_takes_the_webhook_away_from_others",
    ),
    "malicious HTTP": (f"{_HOSTILE}::test_what_no_api_server_sends_is_refused_and_its_connection_ends",),
    "connections that never end": (f"{_HOSTILE}::test_a_handshake_that_does_not_come_to_an_end_is_ended",),
    "webhook work that delays its probes": (
        "tests/webhook/test_asgi.py::test_a_probe_is_answered_while_every_check_that_may_wait_does",
    ),
    "a malicious pool": (f"{_TENANT}::test_a_tenants_config_maps_are_no_pools_and_stop_no_probe",),
    "a forged annotation, state or record": (
        f"{_FORGED}::test_who_writes_the_state_and_takes_the_lease_scales_nothing",
        f"{_FORGED}::test_an_older_state_that_is_written_back_is_not_believed",
        "tests/compactor/test_forged.py::test_the_state_knows_the_drain_before_the_node_is_cordoned",
        "tests/policy/test_marker.py::test_a_forged_marker_keeps_no_pod_from_its_class",
    ),
    "a forged record of an ordered drain": (
        f"{_ORDERS}::test_a_record_names_no_other_node_into_an_order",
        f"{_ORDERS}::test_a_record_uncordons_no_node_that_another_client_cordoned",
        f"{_ORDERS}::test_a_text_that_is_no_record_stops_no_order",
        f"{_ORDERS}::test_the_compactor_believes_no_record",
        f"{_ORDERS}::test_a_kubelet_writes_no_record_on_another_node",
        "tests/compaction/order/test_record.py::test_only_the_owner_of_both_fields_proves_the_cordon",
    ),
    "a DrainOrder with which a user would have the compactor drain what they may not": (
        f"{_ADVERSARY}/test_drain_orders.py::test_a_tenant_without_the_role_creates_no_order",
        f"{_ADVERSARY}/test_drain_orders.py::test_nobody_orders_in_the_name_of_another_user",
        f"{_ADVERSARY}/test_drain_orders.py::test_an_author_without_rights_to_nodes_drains_nothing",
        f"{_ADVERSARY}/test_drain_orders.py::test_without_the_policy_no_order_is_accepted",
        f"{_ADVERSARY}/test_drain_orders.py::test_rights_that_are_taken_away_stop_the_order_and_give_the_cordons_back",
        f"{_ADVERSARY}/test_drain_orders.py::test_an_order_of_every_node_is_refused",
        f"{_ADVERSARY}/test_orders_of_others.py"
        "::test_a_policy_that_was_narrowed_and_restored_between_two_looks_proves_nothing",
        f"{_ADVERSARY}/test_orders_of_others.py"
        "::test_permissions_for_single_nodes_and_namespaces_suffice_and_no_others_count",
        "tests/compactor/test_drain_orders.py::test_each_eviction_is_in_a_namespace_that_a_review_covers",
    ),
    "a DrainOrder that is created to learn from its refusal": (
        "tests/compactor/test_order_rights_kept.py"
        "::test_an_author_who_may_not_list_nodes_learns_nothing_of_them_from_a_refusal",
        "tests/compactor/test_order_source.py::test_an_author_needs_to_see_nodes_and_pods_before_anything_names_them",
    ),
    "a user who deletes the DrainOrder of another user": (
        f"{_ADVERSARY}/test_orders_of_others.py"
        "::test_an_order_is_deleted_by_its_author_by_who_may_patch_nodes_and_with_its_namespace",
        "tests/compaction/order/test_author_policy.py::test_a_delete_is_decided_by_the_policy",
    ),
    "a pod on a cordoned node": (
        f"{_ADVERSARY}/test_orders_of_others.py::test_a_pod_of_a_tenant_on_a_cordoned_node_ends_no_order_of_other_nodes",
        "tests/compactor/test_order_rights_kept.py::test_a_pod_in_a_namespace_of_another_team_fails_its_node_alone",
    ),
    "a forged status of a DrainOrder": (
        f"{_ADVERSARY}/test_drain_orders.py::test_only_the_compactor_writes_the_status",
        f"{_ADVERSARY}/test_drain_orders.py::test_a_forged_annotation_joins_no_order",
        "tests/compactor/test_drain_orders.py::test_an_annotation_that_the_state_does_not_know_is_removed",
    ),
    "a forged PoolStatus": (
        "tests/compactor/test_pool_status_writer.py::test_what_somebody_else_wrote_is_replaced_and_changes_no_decision",
        "tests/e2e/test_pool_status.py::test_kubectl_shows_a_pool_and_a_forged_one_is_neither_kept_nor_believed",
        f"{_ADVERSARY}/test_forged_pool_status.py::test_only_the_compactors_account_writes_a_pool_status",
    ),
    "a leaked signing key": (
        "tests/e2e/test_signing_keys.py::test_after_one_rotation_a_drain_goes_on_and_is_signed_anew",
        "tests/e2e/test_signing_keys.py::test_after_two_rotations_it_is_nobodys_and_doctor_says_so",
    ),
    "requests to the webhook from clients other than the API server": (
        "tests/webhook/test_known_clients.py::test_nobody_else_is",
    ),
    "a wrong usage history": (_BOUNDS,),
    "a small stored text that unpacks": (
        "tests/recommender/test_memory_of_documents.py::test_a_hostile_text_costs_at_most_64_mb",
        "tests/architecture/test_unpacking.py::test_no_other_module_unpacks_anything",
        "tests/recommender/test_reservations.py::test_damaged_texts_are_left_out",
    ),
    "evictions": ("tests/e2e/test_compactor.py::test_thirty_nodes_become_what_was_planned_and_no_budget_is_broken",),
    "terms that a tenant writes on pods, to keep a node for ever": (
        "tests/property/test_term_laws.py"
        "::test_whatever_is_written_terms_keep_a_node_no_longer_than_the_ceiling_without_an_hour_of_chances",
        "tests/property/test_term_laws.py::test_what_a_tenant_writes_keeps_no_node_without_pods_of_its_own",
        "tests/compactor/test_terms_of_pods.py"
        "::test_a_window_that_closes_ends_the_drain_and_nothing_counts_against_the_node",
    ),
    "a successor that cannot be created": (
        "tests/e2e/test_compactor_ends.py::test_a_successor_that_a_quota_refuses_opens_the_node_at_once",
    ),
    "a leader that is killed": (
        "tests/e2e/test_leftovers.py::test_whoever_leads_next_cleans_up_after_a_leader_that_was_killed",
        "tests/e2e/test_leftovers.py::test_a_removal_cleans_up_after_a_leader_that_was_killed",
    ),
    "a suspended machine, or a deleted Lease": (
        "tests/runtime/test_clock.py::test_the_time_of_a_suspended_machine_counts",
        "tests/kube/test_leader_election.py::test_a_replica_that_never_saw_the_lease_waits_for_who_may_have_held_it",
    ),
    "pods of one namespace that accept connections": (
        "tests/metricsapi/test_scrape_queue.py::test_pods_that_never_respond_take_nothing_from_other_namespaces",
        "tests/metricsapi/test_scrape_queue.py::test_slow_targets_together_have_an_eighth_of_the_slots",
        "tests/metricsapi/test_scraper.py::test_a_pod_that_does_not_accept_costs_only_the_time_out_of_connections",
    ),
    "a scraped pod that sends as much": (
        f"{_SCRAPER}::test_no_pod_spends_the_processor_of_all_scrapes",
        "tests/metricsapi/test_exposition.py::test_a_body_of_nothing_but_one_series_is_not_read_to_its_end",
    ),
    "a client that names itself as any user to the metrics API": (
        "tests/metricsapi/test_asgi.py::test_nobody_is_unauthorized_whatever_the_path",
        "tests/e2e/test_metrics_api.py::test_headers_count_only_with_the_aggregation_layers_certificate",
    ),
    "a stolen token of Trimtab": (_WRITES, _LEASE, f"{_TOKENS}::test_a_token_changes_no_policy_that_holds_it"),
    "a compromised library": (
        "tests/deploy/test_image.py::test_what_is_installed_is_what_is_tested",
        "tests/deploy/test_image.py::test_it_runs_as_the_user_that_the_deployments_name",
    ),
    "control sequences for terminals": (
        "tests/cli/test_printable_text.py::test_no_control_character_is_printed",
        "tests/cli/test_text_of_every_verb.py::test_no_format_has_a_character_that_a_terminal_obeys",
        "tests/cli/test_text_of_every_verb.py::test_no_line_begins_with_a_text_of_others",
        "tests/cli/test_text_of_every_verb.py::test_every_verb_reads_the_hostile_cluster_or_says_why_not",
        "tests/architecture/test_printed_text.py::test_no_module_prints_text_but_by_a_printer",
        "tests/runtime/test_log.py::test_a_terminal_obeys_nothing_in_a_value",
        "tests/cli/test_text_of_others.py::test_json_has_the_same_data_and_no_control_character",
    ),
    "a link, a colour or a formula in a name": (
        "tests/cli/test_text_of_others.py::test_markup_in_a_text_is_printed_and_never_obeyed",
        "tests/cli/test_printable_text.py::test_invalid_markup_is_text",
        "tests/architecture/test_markup.py::test_no_command_reads_markup_but_from_its_own_literals",
        "tests/cli/test_csv_table.py::test_a_cell_that_begins_a_formula_is_text",
        "tests/cli/test_csv_table.py::test_no_part_of_a_line_begins_a_formula_at_any_separator",
    ),
    "a secret in a log": ("tests/e2e/test_secrets.py::test_a_process_that_works_writes_no_secret",),
}
"""A threat, as its line begins → the tests of its mitigation."""
