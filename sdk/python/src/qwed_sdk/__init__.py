"""The Python SDK of QWED."""
