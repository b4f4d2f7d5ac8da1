"""The engines, one package or module each."""
