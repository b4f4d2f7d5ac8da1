"""What wrappers return and raise."""


class ToolResult:
    """What a wrapper returns."""

    def __init__(self, data):
        self.data = data

    def __class_getitem__(cls, item):
        return cls


class ToolError(Exception):
    """What a wrapper raises."""
