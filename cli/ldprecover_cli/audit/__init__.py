"""`audit`: what a client's reports prove of its epsilon."""
