"""How do a Helm chart and a kustomize base stay what `trimtab install` applies? They are written from it.

values      what can be chosen about the chart: schema, defaults and description in one place
holes       where a value goes, in a manifest and in a template's text
templates   the manifests of `trimtab install` with holes, and what only a chart has
chosen      a manifest with holes for what can be chosen about it
observed    monitors, rules and dashboards as objects
files       all files of both, path → text
"""
