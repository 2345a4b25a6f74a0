"""Evidence of an attack: alarms, canaries and suspicious items."""
