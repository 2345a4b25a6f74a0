"""Evidence of an attack: alarms and canaries."""
