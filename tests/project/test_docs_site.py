"""The docs build as a site without a warning; its search finds the symptoms; nothing is fetched from other hosts."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import ROOT
from helpers.requirements import package

from tools import docs_site

pytestmark = pytest.mark.docs


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    package("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(
        command, cwd=root, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        timeout=200,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "runbooks").glob("*.md"), ROOT / "CHANGELOG.md"]
    places = {docs_site.place(page.relative_to(ROOT).as_posix()) for page in pages}
    wanted = {each.replace("README.md", "index.md").replace(".md", ".html") for each in places}
    assert sorted(each for each in wanted | {"index.html"} if not (site / each).exists()) == []


def test_search_finds_symptoms(site: Path) -> None:
    """Each section of the page by symptom is an entry of the index, which needs no server."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {each["title"] for each in index["docs"] if each["location"].startswith("symptoms.html#")}
    page = (ROOT / "docs" / "symptoms.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?m)^## (.+)$", page)) == found
    assert (site / "search" / "search_index.js").exists(), "without it the search needs a server"


def test_nothing_is_fetched(site: Path) -> None:
    """A reader without a network has the whole site."""
    fetched = re.compile(r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=\"?(https?://[^\s\">]+)")
    canonical = re.compile(r'rel="?canonical')
    wrong = {
        f"{page.relative_to(site)}: {found[1]}"
        for page in site.rglob("*.html")
        for found in fetched.finditer(page.read_text(encoding="utf-8"))
        if not canonical.search(found[0])
    }
    assert wrong == set()
    home = (site / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"data-md-component=\"?source\b", home), "with repo_url each page asks api.github.com"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[a page](nowhere.md)", "nowhere.md"),
        ("[a heading](memory.md#nowhere)", "nowhere"),
        ("[a runbook](../runbooks/JaxNowhere.md)", "JaxNowhere.md"),
        ("[its heading](../README.md#nowhere)", "nowhere"),
    ],
)
def test_a_dead_link_fails_the_build(text: str, warning: str, tmp_path: Path) -> None:
    root = _checkout(tmp_path)
    page = root / "docs" / "symptoms.md"
    page.write_text(page.read_text(encoding="utf-8") + f"\n{text}\n", encoding="utf-8")
    done = build(root, tmp_path / "site")
    assert done.returncode == 1 and warning in done.stderr, done.stderr[-2000:]


def _checkout(folder: Path) -> Path:
    """A checkout whose pages a test may change."""
    root = folder / "checkout"
    for name in ("docs", "runbooks", "tools"):
        shutil.copytree(ROOT / name, root / name)
    for path in (*ROOT.glob("*.md"), ROOT / "mkdocs.yml"):
        shutil.copy(path, root)
    for other in ("examples", "tests", "jaxobs", "deploy", "benchmarks", "alerts", "dashboards"):
        (root / other).symlink_to(ROOT / other)
    return root


@pytest.mark.parametrize(
    ("link", "here", "on_the_site"),
    [
        ("docs/memory.md#limits", "README.md", "memory.md#limits"),
        ("../README.md", "docs/memory.md", "index.md"),
        ("../runbooks/JaxStraggler.md", "docs/alerts.md", "runbooks/JaxStraggler.md"),
        (f"{docs_site.SOURCES}docs/memory.md", "runbooks/README.md", "../memory.md"),
        ("../examples/serve_ray.py", "docs/serving.md", f"{docs_site.SOURCES}examples/serve_ray.py"),
        ("#limits", "docs/memory.md", "#limits"),
        ("https://example.org/docs/memory.md", "README.md", "https://example.org/docs/memory.md"),
    ],
)
def test_links_lead_to_the_site(link: str, here: str, on_the_site: str) -> None:
    known = {"index.md", "memory.md", "alerts.md", "serving.md", "runbooks/README.md", "runbooks/JaxStraggler.md"}
    assert docs_site.lead(link, here, docs_site.place(here), known) == on_the_site


def test_each_version_has_a_folder_and_the_newest_is_the_start(tmp_path: Path) -> None:
    """The site's pages ask for the list of versions next to their own folder, and show it as a menu."""
    package("mike")
    root, bin_ = _checkout(tmp_path), Path(sys.executable).parent
    names = {f"GIT_{role}_{part}": "somebody" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **names, "PATH": path, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    for command in (
        ("git", "init", "-q"),
        ("git", "commit", "-q", "--allow-empty", "-m", "begin"),
        (bin_ / "mike", "deploy", "--update-aliases", "0.1.0", "latest"),
        (bin_ / "mike", "deploy", "--update-aliases", "0.2.0", "latest"),
        (bin_ / "mike", "set-default", "latest"),
    ):
        subprocess.run(command, cwd=root, env=environment, check=True, timeout=200, capture_output=True)

    def held(path: str) -> str:
        return subprocess.check_output(["git", "show", f"gh-pages:{path}"], cwd=root, text=True)

    assert [(each["version"], each["aliases"]) for each in json.loads(held("versions.json"))] == [
        ("0.2.0", ["latest"]),
        ("0.1.0", []),
    ]
    assert "latest/" in held("index.html")
    settings = re.search(r'<script id="?__config\b[^>]*>(.*?)</script>', held("0.1.0/verdict.html"))
    assert settings is not None
    assert json.loads(settings[1])["version"]["provider"] == "mike"
