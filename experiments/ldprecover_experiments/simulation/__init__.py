"""Simulated poisoned rounds, for notebooks and the demo."""
