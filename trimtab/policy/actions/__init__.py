"""One file per action a policy can take."""
