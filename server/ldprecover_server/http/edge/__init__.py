"""HTTP connections: uvicorn's protocol with limits."""
