"""`send`: one user's report."""
