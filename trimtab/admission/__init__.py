"""Answers admission reviews, and predicts what the API server stores.

handler              bytes of a review → bytes of the response, and a record of the decision
admission_review     AdmissionReview v1, as far as Trimtab reads and writes it
admission_result     one pod → a decision, and a patch that is safe to send
json_patch           two pods → JSON patch; applies a patch and checks it before it is sent
consequences         takes back changes that would keep the pod or its siblings from running
missing_node         checks that a node can hold the changed pod
quota_headroom       checks that all replicas of the owner fit the namespace's quotas
total_quota_use      whether quotas have room for all new pods of manifests together
response_cache       earlier responses, and the check that they are still valid
validate_config      validates PodPolicies and pools
apiserver/           the API server's own admission steps, simulated
pod_templates        manifest → the pods that its controller would create
preview              a pod through both passes of the API server, with the webhook in the chain
readmission          the requests of an owner's next pod
audit/               compares running pods with the policies, and detects policies that harm pods
"""
