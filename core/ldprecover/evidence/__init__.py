"""Evidence of an attack: alarms, canaries, quarantined reports and suspicious items."""
