module trimtab.dev/tests/expander

go 1.26.0

require go.yaml.in/yaml/v2 v2.4.4
