"""Make a release: deploy/release/README.md."""
