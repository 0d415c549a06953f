"""The comment that the GitHub action writes on a pull request."""
