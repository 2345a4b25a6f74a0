"""HTTP in and out: routes translate and hold no logic."""
