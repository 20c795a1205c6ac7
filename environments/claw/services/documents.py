"""Text of documents: plain text files, and PDFs where the pypdf package is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from environments.claw.service import FixtureError, Refusal, Service, route
from rollout.types import JsonObject

TEXT = frozenset({".txt", ".md", ".csv", ".tsv", ".json", ".html", ".xml", ".log", ".eml"})


class Documents(Service):
    """Serves the files below a folder, `fixtures/documents` unless the task names another.

    Where that is the task's own folder or all of its fixtures, as claw-eval has it, only PDFs are
    served: the rest is not for the agent to read.
    """

    prefix = "documents"
    fixtures = {"DOCUMENTS_BASE_DIR": "documents"}

    def load(self) -> None:
        self.base = Path(self.env["DOCUMENTS_BASE_DIR"]).resolve()
        if not self.base.is_dir():
            raise FixtureError(f"{self.base}: no such folder; put the documents into it")
        own = self.base.name == "fixtures" or (self.base / "task.yaml").exists()
        self.served = frozenset({".pdf"}) if own else TEXT | {".pdf"}

    @route("/extract_text")
    def extract_text(self, path: str, max_pages: int | None = None) -> JsonObject:
        file = self._file(path)
        pages = _pages(file)
        returned = min(max_pages or len(pages), len(pages))
        return {
            "path": str(file.relative_to(self.base)),
            "page_count": len(pages),
            "pages_returned": returned,
            "text": "\n\n".join(pages[:returned]).strip(),
        }

    def _file(self, path: str) -> Path:
        try:
            file = (self.base / path).resolve()
            found = file.exists()
        except (OSError, ValueError):  # too long, or with a null character
            raise Refusal(404, f"File not found: {path}") from None
        if not file.is_relative_to(self.base):
            raise Refusal(400, f"Path escapes base directory: {path}")
        if not found:
            raise Refusal(404, f"File not found: {path}")
        if file.suffix.lower() not in self.served:
            what = "PDF" if len(self.served) == 1 else "PDF and text"
            raise Refusal(400, f"Only {what} files are supported")
        return file

    def audit_entry(self, endpoint: str, body: JsonObject, reply: JsonObject) -> JsonObject:
        """As claw-eval's: the length of the text in place of the text."""
        shown = {key: value for key, value in reply.items() if key != "text"}
        shown["text_length"] = len(reply["text"])
        return super().audit_entry(endpoint, body, shown)


def _pages(file: Path) -> list[str]:
    """The text of each page; a text file is one page."""
    if file.suffix.lower() != ".pdf":
        return [file.read_text("utf-8", errors="replace")]
    try:
        pypdf = import_module("pypdf")
    except ModuleNotFoundError:
        raise Refusal(400, "PDF files can't be read here: pypdf is not installed") from None
    return [page.extract_text() or "" for page in pypdf.PdfReader(file).pages]
