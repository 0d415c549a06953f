"""What does a cluster look like? Nouns as values; nothing here acts."""
