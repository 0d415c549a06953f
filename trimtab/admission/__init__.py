"""What do we answer to this review, and what will the API server store?

handler                bytes of a review → bytes of the answer, and a record of the decision
admission_review       AdmissionReview v1, as far as we read and write it
admission_result       one pod → a decision, and a patch that is safe to send
json_patch             two pods → JSON patch, and a patch applied
consequences           could the changed pod still run, and all its siblings?
missing_node,          the two checks behind it: nodes, quotas
quota_headroom
response_cache         answers given before, and whether they still hold
validate_config        may this PodPolicy or pool enter the cluster?
apiserver/             the API server's own admission steps, simulated
pod_templates          which pods would this manifest make?
preview                a pod through both passes of the API server, with our webhook in the chain
readmission            what the next pod of an owner would request
audit/                 do running pods match policy, and do they fare worse since a policy changes them?
"""
