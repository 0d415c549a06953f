"""Which complaints does the API have about one part of a pod?

A file per part; each gives sentences as the server writes them (`field: Invalid value: …: why`), none where all is
well. Facts are those of pkg/apis/core/validation/validation.go and apimachinery pkg/api/validate/content, 1.36.
"""
