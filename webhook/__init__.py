"""The admission service: it serves; it does not decide."""
