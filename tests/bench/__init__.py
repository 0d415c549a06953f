"""What does it cost? Measured beside others in the same run; the last line is `RESULT name=value …`."""
