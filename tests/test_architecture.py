"""Imports point one way, and each heavy library is imported in one place only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("rollout", "environments", "harness_wrappers", "judges", "suites", "train", "reports")

ALLOWED = {
    "rollout": {"rollout"},
    "environments": {"rollout", "environments"},
    "harness_wrappers": {"rollout", "harness_wrappers"},
    "judges": {"rollout", "judges"},
    "suites": {"rollout", "environments", "harness_wrappers", "judges", "suites"},
    "train": {"rollout", "suites", "train"},
    "reports": {"rollout", "judges", "suites", "reports"},
}

ONLY_IN = {
    "inspect_ai": {"suites/inspect_adapter.py", "suites/command/inspect_log.py"},
    "kubernetes": {"rollout/sandboxes/kubernetes.py"},
    "pandas": {"reports"},
    "playwright": {"environments/browser_use"},
    "plotly": {"reports"},
    "pyarrow": {"reports", "train"},
    "torch": {"train"},
    "transformers": {"train"},
    "verl": {"train/verl"},
    "vllm": {"train/local"},
}


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Top-level names of all absolute imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way(package: str) -> None:
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / package).rglob("*.py")
        for name in imported(path) & set(PACKAGES)
        if name not in ALLOWED[package]
    }
    assert not wrong


@pytest.mark.parametrize("library", ONLY_IN)
def test_heavy_libraries_stay_in_their_place(library: str) -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in modules()
        if library in imported(path)
        and not any(str(path.relative_to(ROOT)).startswith(place) for place in ONLY_IN[library])
    ]
    assert not wrong


@pytest.mark.parametrize("path", list(modules()), ids=lambda path: str(path.relative_to(ROOT)))
def test_exported_names_exist(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported: list[str] = []
    defined: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == "__all__":
                exported = [ast.literal_eval(name) for name in node.value.elts]  # type: ignore[attr-defined]
            defined.add(node.targets[0].id)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined.add(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    assert set(exported) <= defined
