"""Reports that several verbs show: their parts, and the tables that are drawn of them."""
