"""Report filters: drop reports that honest users would hardly send, and estimate without bias."""
