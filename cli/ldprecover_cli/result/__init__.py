"""`result`: what a round says."""
