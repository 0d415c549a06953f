"""Make a release: docs/how-to/release.md."""
