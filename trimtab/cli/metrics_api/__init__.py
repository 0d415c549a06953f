"""The verb `trimtab metrics-api`: the process, the check of its rules, and the proposal of an HPA."""
