"""A double of the sandbox's client that records calls instead of making them."""
