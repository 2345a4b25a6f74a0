"""The commit of submissions: exactly once, and durable before the answer."""
