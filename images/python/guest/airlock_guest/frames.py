"""The frames and the line where code has failed."""

from airlock_guest.execute import NAME


def frames_of(failure):
    """Return the frames of a failure's traceback, the outermost first."""
    frames, at = [], failure.__traceback__
    while at is not None and len(frames) < 1000:
        frames.append(at.tb_frame)
        at = at.tb_next
    return frames


def line_of(failure, code):
    """Return the code's line that failed, or ""."""
    number, at = 0, failure.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == NAME:
            number = at.tb_lineno
        at = at.tb_next
    lines = code.split("\n")
    return lines[number - 1] if 0 < number <= len(lines) else ""
