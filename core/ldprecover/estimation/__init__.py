"""From tallies to frequencies: estimates, their laws, simulated tallies, error metrics."""
