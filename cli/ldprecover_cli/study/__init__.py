"""`study`: the paper's evaluation, and other studies."""
