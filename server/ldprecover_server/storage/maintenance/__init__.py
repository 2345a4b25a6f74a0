"""Work on stored rounds beside the commits: deletion and the check."""
