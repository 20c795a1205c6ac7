"""Text recognition that always recognises the task's own text, whatever image it is shown."""

from __future__ import annotations

from pathlib import Path

from environments.claw.service import FixtureError, Service, route
from rollout.types import JsonObject


class Ocr(Service):
    """`OCR_FILENAME` names the text in `ocr/`; `OCR_FILENAMES`, with commas, joins several."""

    prefix = "ocr"
    fixtures = {"OCR_FIXTURES": ""}

    def load(self) -> None:
        folder = Path(self.env["OCR_FIXTURES"]) / "ocr"
        names = [name.strip() for name in self.env.get("OCR_FILENAMES", "").split(",") if name]
        if names:
            texts = [_read(folder / name) for name in names]
            self.text = "\n\n".join(
                f"--- Document {n}: {name} ---\n{text}"
                for n, (name, text) in enumerate(zip(names, texts, strict=True), 1)
            )
        else:
            self.text = _read(folder / self.env.get("OCR_FILENAME", "menu_ocr.txt"))

    @route("/extract")
    def extract(self, image_path: str = "") -> JsonObject:
        return {"text": self.text, "confidence": 0.95, "language": "mixed"}

    def audit_entry(self, endpoint: str, body: JsonObject, reply: JsonObject) -> JsonObject:
        return {"endpoint": endpoint, "request_body": body, "timestamp": self.clock.stamp()}


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise FixtureError(f"{path}: {error.strerror}; write the recognised text into it") from None
