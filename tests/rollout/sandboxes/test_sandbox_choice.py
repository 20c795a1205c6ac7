"""From a name to a provider, and what is said when it can't work."""

import pytest

from rollout.errors import UsageError
from rollout.sandboxes import bubblewrap as bubblewrap_module
from rollout.sandboxes import choose
from rollout.sandboxes import docker as docker_module
from rollout.sandboxes.bubblewrap import Bubblewrap
from rollout.sandboxes.docker import Docker
from rollout.sandboxes.local import Local


@pytest.fixture
def no_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


async def test_auto_without_bubblewrap_is_local_with_a_warning(no_programs):
    provider = await choose("auto")
    assert isinstance(provider, Local)
    assert "does not isolate" in provider.warning
    assert "apt-get install bubblewrap" in provider.warning


async def test_auto_is_bubblewrap_where_it_works():
    if problem := await Bubblewrap().check():
        pytest.skip(problem)
    provider = await choose("auto")
    assert isinstance(provider, Bubblewrap)
    assert provider.warning == ""
    assert provider.fingerprint()["version"]


@pytest.mark.parametrize("name", ["bubblewrap", "docker"])
async def test_a_named_provider_that_is_not_installed(no_programs, name):
    with pytest.raises(
        UsageError, match=f"--sandbox {name}: .* is not installed; get it with: apt"
    ):
        await choose(name)


async def test_an_unknown_name():
    with pytest.raises(UsageError, match="did you mean 'bubblewrap'"):
        await choose("bubblewarp")


async def test_no_docker_daemon(monkeypatch, tmp_path):
    if "not installed" in await Docker().check():
        pytest.skip("docker is not installed")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert "daemon does not answer" in await Docker().check()


@pytest.mark.docker
async def test_no_docker_image(monkeypatch):
    if problem := await Docker().check():
        pytest.skip(problem)
    monkeypatch.setattr(docker_module, "image", lambda: "anyharness-sandbox:none")
    assert "build it with: make images" in await Docker().check()


async def test_the_image_tag_follows_the_recipe(monkeypatch, tmp_path):
    (tmp_path / "packages.txt").write_text("bash\n")
    monkeypatch.setattr(docker_module, "RECIPE", tmp_path)
    before = docker_module.image()
    (tmp_path / "packages.txt").write_text("bash\ncurl\n")
    assert docker_module.image() != before


async def test_a_cache_that_cannot_be_written_names_the_remedy(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    if "not installed" in (problem := await Bubblewrap().check()):
        pytest.skip(problem)
    assert "set XDG_CACHE_HOME" in problem


async def test_the_hosts_own_python_does_where_the_system_has_none(monkeypatch, tmp_path):
    provider = Bubblewrap()
    if problem := await provider.check():
        pytest.skip(problem)
    monkeypatch.setattr(bubblewrap_module, "SYSTEM_PYTHON", str(tmp_path / "none"))
    assert await provider.check() == ""
