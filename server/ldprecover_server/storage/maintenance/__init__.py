"""Work on stored rounds beside the commits: deletion, unlinking, filters and the check."""
