module trimtab.dev/tests/bench/load-client

go 1.22
