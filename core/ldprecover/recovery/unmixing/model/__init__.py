"""The statistical model: what hypotheses on a round make of its estimates."""
