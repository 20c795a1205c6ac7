"""Pictures in the records: kept once, by digest, however often a conversation is sent again.

In a recorded request `sha256:<hex>` stands where a picture's base64 stood, whatever the dialect:

    chat, Responses   "data:image/png;base64,sha256:<hex>"
    Messages          {"type": "base64", "media_type": "image/png", "data": "sha256:<hex>"}

The bytes are `Trace.images[<hex>]`. Everything else of a request stays as it was, byte by byte, and
`put_back` undoes it. Pictures that a request only links to stay links.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256

import msgspec

from rollout.types import Image

__all__ = [
    "TOKENS",
    "data_url",
    "digest_of",
    "inlined",
    "put_back",
    "recorded",
    "taken_out",
    "without",
]

TOKENS = 1_100
"""What a screenshot costs in a model's context, roughly: for estimates where nobody can count."""

MARK = b"sha256:"
DATA_URL = re.compile(rb'"data:(image/[\w.+-]+);base64,([A-Za-z0-9+/]+={0,2})"')
REFERENCE = re.compile(rb"sha256:([0-9a-f]{64})")
REFERENCE_URL = re.compile(rb'"data:(image/[\w.+-]+);base64,(sha256:[0-9a-f]{64})"')
URL = re.compile(r"data:([\w.+/-]+);base64,(?:sha256:([0-9a-f]{64})|([A-Za-z0-9+/]+={0,2}))")
BASE64 = b'"base64"'


def taken_out(body: bytes) -> tuple[bytes, dict[str, Image]]:
    """A request's JSON with references for its pictures, and the pictures by digest."""
    found: dict[str, Image] = {}
    if b"base64" not in body:  # a look of a few microseconds, which is all that most calls cost
        return body, found

    def refer(kind: bytes, data: bytes) -> bytes:
        """The reference for a picture's base64."""
        if (image := _image(kind, data)) is None:
            return data
        digest = image.digest
        found[digest] = image
        return MARK + digest.encode()

    return _exchanged(body, DATA_URL, refer), found


def put_back(request: bytes, images: Mapping[str, Image]) -> bytes:
    """The request as it was sent; references to pictures that are not there stay, as do mere words."""
    if MARK not in request:
        return request

    def data(kind: bytes, reference: bytes) -> bytes:
        """The base64 that a reference stands for."""
        match = REFERENCE.fullmatch(reference)
        image = images.get(match[1].decode()) if match and kind.startswith(b"image/") else None
        return reference if image is None else b64encode(image.data)

    return _exchanged(request, REFERENCE_URL, data)


def without(body: bytes) -> tuple[int, int]:
    """How many bytes of a request's JSON are no picture in a data URL, and how many such there are."""
    sizes = [match.end() - match.start() for match in DATA_URL.finditer(body)]
    return len(body) - sum(sizes), len(sizes)


def data_url(image: Image) -> str:
    """The picture as a URL that holds it."""
    return f"data:{image.media_type};base64,{b64encode(image.data).decode()}"


def digest_of(url: str) -> str:
    """SHA-256 of a picture's bytes, which its URL holds or refers to; of any other URL, its own."""
    match = URL.fullmatch(url)
    if match is None:
        return sha256(url.encode()).hexdigest()
    return match[2] or sha256(b64decode(match[3])).hexdigest()


def recorded(url: str) -> str | None:
    """The digest that a URL out of the records has in place of its picture; None for any other."""
    match = URL.fullmatch(url)
    return match[2] if match else None


def inlined(url: str, images: Mapping[str, Image]) -> str:
    """The URL with the picture that it refers to; as it is where it refers to none of `images`."""
    image = images.get(recorded(url) or "")
    return url if image is None else data_url(image)


def _exchanged(
    body: bytes, urls: re.Pattern[bytes], exchange: Callable[[bytes, bytes], bytes]
) -> bytes:
    """A request with other data, by kind and data, wherever a dialect has a picture."""
    if b";base64," in body:
        body = urls.sub(
            lambda match: b'"data:%b;base64,%b"' % (match[1], exchange(match[1], match[2])), body
        )
    if BASE64 in body:
        pieces, end = [], 0
        for start, stop, source in _sources(body):
            data = source.data.encode()
            replaced = body[start:stop].replace(data, exchange(source.media_type.encode(), data))
            pieces += [body[end:start], replaced]
            end = stop
        body = b"".join([*pieces, body[end:]])
    return body


class _Source(msgspec.Struct):
    """What a picture is in the Messages format."""

    type: str
    media_type: str
    data: str


def _sources(body: bytes) -> Iterator[tuple[int, int, _Source]]:
    """Each object of a Messages request that may hold a picture, and where it stands.

    Neither kinds nor base64 contain braces, so the nearest ones around the mark are the object's.
    """
    at = body.find(BASE64)
    while at >= 0:
        start, stop = body.rfind(b"{", 0, at), body.find(b"}", at) + 1
        try:
            source = msgspec.json.decode(body[start:stop], type=_Source)
        except msgspec.DecodeError:
            stop = at + len(BASE64)
        else:
            if source.type == "base64" and source.data:
                yield start, stop, source
        at = body.find(BASE64, stop)


def _image(kind: bytes, data: bytes) -> Image | None:
    """The picture that base64 stands for; None where putting it back would give other base64."""
    if not kind.startswith(b"image/"):
        return None
    try:
        decoded = b64decode(data, validate=True)
    except ValueError:
        return None
    if b64encode(decoded) != data:
        return None
    return Image(data=decoded, media_type=kind.decode())
