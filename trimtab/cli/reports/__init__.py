"""Reports that several verbs show: their parts, and the tables that are drawn of them.

A report that only one verb shows belongs to the folder of that verb. No verb is imported here; what a report needs of
files or of a cluster is read by `trimtab.inputs`.
"""
