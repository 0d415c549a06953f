"""A report as one page to pass around: pictures and tables, no network; its only script sorts and searches."""
