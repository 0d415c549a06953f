"""A report as one HTML page that can be sent to others: it loads nothing, and its only script sorts and searches."""
