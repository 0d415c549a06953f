"""The `vpa` verb: what a VPA would have done, and which VPAs to add, change and remove."""
