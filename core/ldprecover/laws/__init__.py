"""Distributions that reports and counts follow."""
