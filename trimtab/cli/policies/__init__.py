"""Check, list and explain policies; print their schema."""
