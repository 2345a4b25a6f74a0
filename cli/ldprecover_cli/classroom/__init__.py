"""A class: a practice round that phones on the local network answer, attack and see recovered."""
