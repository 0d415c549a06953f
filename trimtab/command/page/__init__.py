"""A report as one page to pass around: pictures, no network, nothing to run."""
