"""Reads the VPA's installation and the VPAs that name Trimtab, and judges their recommendations, for `trimtab
doctor`."""
