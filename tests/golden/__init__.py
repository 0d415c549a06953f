"""What every verb prints, stored: `python -m tests.golden` makes the outputs again and shows the difference."""
