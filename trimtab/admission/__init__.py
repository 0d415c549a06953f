"""What do we answer to this review, and what will the API server store?

review      AdmissionReview v1, as far as we read and write it
answer      bytes of a review → bytes of the answer, and a record of what was decided
judge       one pod → a decision, and a patch that is safe to send
patch       two pods → JSON patch, and a patch applied
check       is this patch safe to send?
validate    may this PodPolicy enter the cluster?
apiserver/  the API server's own steps around us, simulated
templates   which pods would this manifest make?
preview     a pod through both passes of the server, with us in the chain
running/    did the pods that run come through as policy says?
harm/       do pods fare worse since a policy changes them?
rewrite     the manifest as if its author had written what we decided
"""
