"""Images: decide claims about size, format, mode and colours from the file, but not about the content of the
picture."""

from __future__ import annotations

import base64
import io
import re
import warnings
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError

from qwed_new.limits import TooLarge
from qwed_new.verdict import Status, Verdict

ENGINE = "image"
MAX_BYTES = 64 * 1024 * 1024
MAX_PIXELS = 40_000_000
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO")
_NAMES = {
    "jpg": "JPEG",
    "jpeg": "JPEG",
    "png": "PNG",
    "gif": "GIF",
    "webp": "WEBP",
    "bmp": "BMP",
    "tiff": "TIFF",
    "tif": "TIFF",
    "ico": "ICO",
}
_COLOURS = {
    "black": (0, 0, 0), "white": (255, 255, 255), "red": (255, 0, 0), "green": (0, 128, 0), "lime": (0, 255, 0),
    "blue": (0, 0, 255), "yellow": (255, 255, 0),
            "cyan": (0, 255, 255), "magenta": (255, 0, 255), "gray": (128, 128, 128), "grey": (128, 128, 128),
            "orange": (255, 165, 0)}  # fmt: skip
_START = r"^(?:the|this|that)?\s*(?:image|picture|photo|file)?\s*(?:'s)?\s*"


class _NotBase64(ValueError):
    """The content of the image is not base64."""


def verify_image(image_path: str | None = None, claim: str = "", image_base64: str | None = None) -> Verdict:
    """Decide a claim on the size, format, transparency or one colour of an image; INCONCLUSIVE for what would need
    eyes.

    The image is a file, or its content in base64, which a service is sent; one of them.
    """
    try:
        if not isinstance(claim, str) or len(claim) > 2_000:
            raise ValueError("the claim is not a short text")
        if (image_path is None) == (image_base64 is None):
            raise ValueError("one of image_path and image_base64 is needed")
        facts, image = _open(_file(image_path) if image_base64 is None else _decoded(image_base64))
    except TooLarge as error:
        return Verdict(Status.BLOCKED, ENGINE, str(error))
    except OSError as error:
        return Verdict(
            Status.INCONCLUSIVE, ENGINE, f"the file cannot be read: {error.strerror or type(error).__name__}")
    except _NotBase64 as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, str(error))
    except (ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        bomb = isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning)
        return Verdict(
            Status.BLOCKED if bomb else Status.INCONCLUSIVE, ENGINE,
            f"the image is {'too large' if bomb else 'not readable'}")
    text = " ".join(claim.lower().strip().rstrip(".!?").split())
    results = []
    for part in re.split(r"\s+and\s+(?:it\s+)?(?=is|has)", text):
        answer = _decide(part, facts, image)
        if answer is None:
            return Verdict(
                Status.INCONCLUSIVE,
                ENGINE,
                "the claim is about what the image shows, which needs a vision model",
                {"facts": facts, "part": part},
            )
        results.append((part, answer))
    wrong = [p for p, holds in results if not holds]
    evidence = {"facts": facts, "parts": {p: h for p, h in results}, "method": "read from the file"}
    if wrong:
        return Verdict(
            Status.ERROR, ENGINE,
            f"the image is {facts['width']}x{facts['height']} {facts['format']}: not so: {wrong[0]}", evidence
        )
    return Verdict(Status.VERIFIED, ENGINE, "the file is as the claim says", evidence)


def _decoded(text: str) -> bytes:
    if not isinstance(text, str):
        raise ValueError("image_base64 is not a text")
    if len(text) > MAX_BYTES * 4 // 3 + 4:
        raise TooLarge(f"the image has more than {MAX_BYTES} bytes")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise _NotBase64(
            "image_base64 is not base64 as in RFC 4648: write the file's bytes without line breaks or a data: "
            "prefix") from None


def _file(path: str | None) -> bytes:
    if not isinstance(path, str):
        raise ValueError("the path is not a text")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(2, "there is no such file")
    if file.stat().st_size > MAX_BYTES:
        raise TooLarge(f"the file has more than {MAX_BYTES} bytes")
    return file.read_bytes()


def _open(data: bytes) -> tuple[dict[str, Any], Image.Image]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            image = Image.open(io.BytesIO(data), formats=_FORMATS)
        except UnidentifiedImageError:
            raise ValueError("not an image") from None
    if image.width * image.height > MAX_PIXELS:
        raise TooLarge(f"the image has {image.width} × {image.height} pixels, more than {MAX_PIXELS}")
    transparent = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    facts = {
        "width": image.width,
        "height": image.height,
        "format": image.format,
        "mode": image.mode,
        "frames": getattr(image, "n_frames", 1),
        "has_alpha": transparent,
        "bytes": len(data),
    }
    return facts, image


def _decide(text: str, facts: dict[str, Any], image: Image.Image) -> bool | None:
    if match := re.match(
        _START
        + r"(?:size |resolution |dimensions? )?(?:is|are|has|measures)?\s*"
        r"(?:a |the )?(?:size |resolution |dimensions? )?(?:of )?"
        r"(\d{1,6})\s*(?:x|×|by)\s*(\d{1,6})(?:\s*(?:pixels?|px))?$",
        text,
    ):
        return (int(match[1]), int(match[2])) == (facts["width"], facts["height"])
    if match := re.match(
        _START
        + r"(?:is|has|with)?\s*(?:a |the )?(width|height)?\s*(?:is|of|:)?\s*"
        r"(?:exactly )?(\d{1,6})\s*(?:pixels?|px)?(?:\s*(wide|tall|high))?$",
        text,
    ):
        side = "width" if "width" in (match[1] or "") or match[3] == "wide" else "height" if match[1] or match[
            3] else None
        return None if side is None else facts[side] == int(match[2])
    if match := re.match(
        _START + r"(width|height) is (?:at least|more than|greater than|over) (\d{1,6})(?:\s*(?:pixels?|px))?$", text):
        return facts[match[1]] >= int(match[2]) if "at least" in text else facts[match[1]] > int(match[2])
    if match := re.match(
        _START + r"(?:is|format is|has)\s*(?:an? |the )?(?:format )?(\w+)(?: (?:image|file|format))?$", text):
        word = match[1]
        if word in _NAMES:
            return facts["format"] == _NAMES[word]
        if word in ("square", "landscape", "portrait"):
            w, h = facts["width"], facts["height"]
            return {"square": w == h, "landscape": w > h, "portrait": w < h}[word]
        if word in ("animated",):
            return facts["frames"] > 1
        if word in ("grayscale", "greyscale"):
            return _grey(image)
        if word in ("transparency", "alpha"):
            return facts["has_alpha"]
    if re.match(_START + r"(?:has|contains) (?:an? )?(?:transparency|alpha(?: channel)?)$", text):
        return facts["has_alpha"]
    if match := re.match(_START + r"is (?:all|entirely|completely|solid|only|just) (\w+)$", text):
        return _solid(image, match[1])
    return None


def _solid(image: Image.Image, name: str) -> bool | None:
    if name not in _COLOURS:
        return None
    extrema = image.convert("RGB").getextrema()
    return [e[0] for e in extrema] == [e[1] for e in extrema] == list(_COLOURS[name])  # type: ignore[index]


def _grey(image: Image.Image) -> bool:
    if image.mode in ("L", "1", "LA", "I", "F"):
        return True
    red, green, blue = image.convert("RGB").split()
    return red.tobytes() == green.tobytes() == blue.tobytes()
