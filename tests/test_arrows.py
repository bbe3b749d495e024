"""Which folder may import which: read from the sources, so that the picture in the README stays true."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Folder of eagle2 -> the folders it may import at module level; "" are the modules beside the folders.
ARROWS = {
    "": set(),
    "trace": {"", "decoding"},
    "decoding": {"", "models", "drafters", "trace"},
    "models": {"", "decoding"},
    "drafters": {"", "models", "decoding"},
    "analysis": {"", "trace", "decoding"},
    "loading": {"", "models", "drafters", "decoding", "trace"},
    "examples": {"", "trace", "decoding"},
    "bench": {"", "analysis", "decoding", "drafters", "examples", "loading", "models", "trace"},
    "training": {"", "analysis", "bench", "decoding", "drafters", "loading", "models", "trace"},
    "cli": {"", "analysis", "bench", "loading", "trace", "training"},
}
TORCH_FREE = ("trace", "analysis")


def modules(package: str) -> dict[str, Path]:
    paths = (ROOT / package).rglob("*.py")
    return {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in paths}


def imported(path: Path, everywhere: bool = False) -> set[str]:
    """Modules that a file imports when it is imported itself; `everywhere`: also those that functions import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree)) if everywhere else tree.body
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            submodules = {name for name in names if (ROOT / name.replace(".", "/")).with_suffix(".py").exists()}
            found |= submodules if submodules == names else {node.module, *submodules}
    return found


EAGLE2, VISUAL = modules("eagle2"), modules("visual")


def folder(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 2 or (ROOT / "eagle2" / parts[-1]).is_dir() else ""


@pytest.mark.parametrize("name", EAGLE2)
def test_a_folder_of_the_engine_imports_only_what_it_may(name):
    own = folder(name)
    if name == "eagle2.__main__":
        own = "cli"
    others = {folder(module) for module in imported(EAGLE2[name]) & EAGLE2.keys() - {"eagle2"}} - {own}
    assert others <= ARROWS[own]


@pytest.mark.parametrize("name", EAGLE2.keys() - {"eagle2.__main__"})  # the edge, as app.py is
def test_the_engine_never_imports_the_pictures(name):
    assert not any(module.split(".")[0] == "visual" for module in imported(EAGLE2[name], everywhere=True))


@pytest.mark.parametrize("name", [name for name in EAGLE2 if folder(name) in TORCH_FREE])
def test_what_happened_is_read_without_torch(name):
    assert not {"torch", "transformers"} & {module.split(".")[0] for module in imported(EAGLE2[name])}


@pytest.mark.parametrize("package", [EAGLE2, VISUAL])
def test_no_module_leads_back_to_itself(package):
    try:
        TopologicalSorter({name: imported(path) & package.keys() for name, path in package.items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("package", ["eagle2", "visual"])
def test_every_folder_says_what_it_holds_and_what_it_may_import(package):
    for path in (ROOT / package).rglob("__init__.py"):
        if path.parent.name in ("js", "css", package, "figures", "en", "zh"):
            continue
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert len([line for line in said.splitlines() if line]) >= 2, path
        assert "mport" in said, path
