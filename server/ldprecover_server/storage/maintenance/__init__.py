"""Work on stored rounds beside the commits: deletion, unlinking and the check."""
