module trimtab.dev/tests/bench/reference-webhook

go 1.22
