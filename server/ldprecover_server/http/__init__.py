"""All that knows HTTP: connections, bodies, problems, answers and routes."""
