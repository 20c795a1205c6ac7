"""Chat requests with pictures as token ids, for models that read both."""

from __future__ import annotations

import base64
import copy
import hashlib
import io
from collections.abc import Sequence
from typing import Any

from train.messages import image_urls

__all__ = ["VisionTokenizer", "decode_image"]

KEPT = 100_000
"""Pictures whose number of tokens is remembered: those of the episodes under way, many times over."""


class VisionTokenizer:
    """A processor as `train.policy` wants a tokenizer: each image takes as many tokens as in training.

    vLLM folds the run of placeholders and unfolds it again; verl's trainer needs it unfolded. An episode
    shows the same pictures in every call, and to process one costs 0.1 s of CPU (1280 x 720), so how many
    tokens a picture takes is found out once. That will do for processors which repeat a placeholder, as
    Qwen's do; whether one does is seen at the first picture, and for others all are processed each time.
    """

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._places: dict[bytes, int] = {}
        self._repeats: bool | None = None

    def apply_chat_template(self, conversation: Any, **options: Any) -> list[int]:
        """The ids of a chat request's prompt."""
        urls = [url for message in conversation for url in image_urls(message)]
        # Processors rewrite the messages that they are given.
        messages = copy.deepcopy(conversation)
        text = self._processor.apply_chat_template(messages, **{**options, "tokenize": False})
        if not urls:
            return self._ids(text)
        if self._repeats is None:
            self._repeats = self._joined(text, urls) == self._ids(text, urls)
        return self._joined(text, urls) if self._repeats else self._ids(text, urls)

    def decode(self, token_ids: Any, **options: Any) -> Any:
        """The text of ids."""
        return self._processor.tokenizer.decode(token_ids, **options)

    def _ids(self, text: str, urls: Sequence[str] = ()) -> list[int]:
        images = [_picture(url) for url in urls]
        return list(self._processor(text=[text], images=images or None)["input_ids"][0])

    def _joined(self, text: str, urls: Sequence[str]) -> list[int]:
        """The ids of the text, each picture's placeholder repeated as the picture wants it."""
        counts = map(self._count, urls)
        ids: list[int] = []
        for token in self._ids(text):
            ids += [token] * (next(counts, 1) if token == self._processor.image_token_id else 1)
        return ids

    def _count(self, url: str) -> int:
        """Tokens of a picture."""
        key = hashlib.sha256(url.encode()).digest()
        if key not in self._places:
            if len(self._places) >= KEPT:
                self._places.clear()
            self._places[key] = len(self._ids(self._processor.image_token, [url]))
        return self._places[key]


def _picture(url: str) -> Any:
    """The image of a `data:` URL. Raises ValueError for any other."""
    head, _, data = url.partition(",")
    if not head.startswith("data:"):
        raise ValueError(f"image {url[:40]!r}: only data: URLs can be trained on")
    return decode_image(base64.b64decode(data))


def decode_image(data: bytes) -> Any:
    """A PIL image, RGB."""
    from PIL import Image

    return Image.open(io.BytesIO(data)).convert("RGB")
