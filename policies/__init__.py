"""The policies we ship: documents, with example pods before and after."""
