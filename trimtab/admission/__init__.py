"""What do we answer to this review, and what will the API server store?

review      AdmissionReview v1, as far as we read and write it
patch       two pods → JSON patch, and a patch applied
check       is this patch safe to send?
answer      bytes of a review → bytes of the answer, and a record of what was decided
apiserver/  the API server's own steps around us, simulated, for `trimtab admit`
"""
