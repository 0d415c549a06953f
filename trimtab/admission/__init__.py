"""Answers admission reviews, and predicts what the API server stores.

handler              bytes of a review → bytes of the response, and a record of the decision
admission_review     AdmissionReview v1, as far as Trimtab reads and writes it
admission_context    the policies, facts, settings and caches by which pods are decided
pod_decision         one pod → a decision without changes that would keep it from running, and a safe patch
admission_result     what is recorded of a decision, for the response, the log and the metrics
json_patch           two pods → JSON patch; applies a patch and checks it before it is sent
template_patch       applies the patch of one pod to similar pods
missing_node         checks that a node can hold the changed pod
quota_headroom       checks that all replicas of the owner fit the namespace's quotas
total_quota_use      whether quotas have room for all new pods of manifests together
response_cache       earlier responses, and the check that they are still valid
validate_config      validates PodPolicies and pools
apiserver/           the API server's own admission steps, simulated
pod_templates        manifest → the pods that its controller would create
preview              a pod, or the next pod of an owner, through both passes of the API server, with the webhook
readmission          the requests of an owner's next pod
audit/               compares running pods with the policies, and detects policies that harm pods
"""
