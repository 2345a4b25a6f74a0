"""`file`: rounds in files."""
