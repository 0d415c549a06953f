"""The product against a real control plane: `make e2e`."""
