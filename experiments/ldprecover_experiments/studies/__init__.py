"""Studies: attacks against recoveries in many simulated rounds, and the paper's experiments."""
