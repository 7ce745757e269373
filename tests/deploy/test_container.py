"""The container image: what its description promises, and, where an image can be built, that it keeps it.

An image is built where REMEM_TEST_IMAGE names one with Python to build on, in any form that `buildah` knows, such as
docker.io/library/python:3.13-slim-bookworm or oci-archive:/a/file.tar.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
USER = "10001"
# Of the image: a commons has to be at the port that its health is asked at.
URL = "http://127.0.0.1:7363"


def instructions(stage: int) -> list[tuple[str, str]]:
    """Return the instructions of a stage of the description, counted from its first FROM."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    stages: list[list[tuple[str, str]]] = []
    for name, rest in lines:
        if name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append((name, " ".join(rest.split())))
    return stages[stage]


def test_everything_that_the_wheel_holds_goes_into_the_build_and_nothing_else_may() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {path.partition("/")[0] for path in wheel["only-include"]}
    copied = {path for name, rest in instructions(0) if name == "COPY" for path in rest.split()[:-1]}
    let_through = {
        line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")
    }
    assert needed | {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "deploy/constraints.txt"} == copied
    assert let_through == copied | {"deploy"}


def test_the_image_itself_holds_one_folder_of_the_build_and_runs_as_a_number() -> None:
    last = instructions(-1)
    assert [rest for name, rest in last if name in ("COPY", "ADD")] == ["--from=build /opt/remem /opt/remem"]
    assert [rest for name, rest in last if name == "USER"] == [f"{USER}:{USER}"]
    assert [rest for name, rest in last if name == "VOLUME"] == ["/data"]
    assert not any("pip" in rest for name, rest in last if name == "RUN")


def test_every_setting_of_the_image_is_one() -> None:
    from remem_server.settings import Settings

    named = re.findall(r"REMEM_([A-Z_]+)=", " ".join(rest for name, rest in instructions(-1) if name == "ENV"))
    assert named
    assert {name.lower() for name in named} <= set(Settings.model_fields)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Path]]:
    """Build the image; return its configuration and where its files are mounted."""
    base = os.environ.get("REMEM_TEST_IMAGE")
    if not base:
        pytest.skip("no image is built: REMEM_TEST_IMAGE names none with Python to build on")
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("no image is built: it takes root and buildah (apt-get install buildah)")
    store = tmp_path_factory.mktemp("images")

    def buildah(*arguments: str) -> str:
        command = ["buildah", "--root", f"{store}/root", "--runroot", f"{store}/run", "--storage-driver", "vfs"]
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    buildah(
        "build", "--format", "docker", "--network", "host", "--build-arg", f"PYTHON={base}", "--tag", "remem",
        "--volume", "/etc/ssl/certs:/etc/ssl/certs:ro", "--file", str(CONTAINERFILE), str(ROOT),
    )  # fmt: skip
    container = buildah("from", "--pull-never", "localhost/remem")
    try:
        config = json.loads(buildah("inspect", "--type", "image", "localhost/remem"))["Docker"]["config"]
        yield config, Path(buildah("mount", container))
    finally:
        buildah("rm", container)
        shutil.rmtree(store)


@contextmanager
def running(config: dict[str, Any], root: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the image's program as its user, on a root that is read-only but for /data, without any capability."""
    environment = {name: value for name, _, value in (entry.partition("=") for entry in config["Env"])}
    script = (
        'mount --bind "$0" "$0" && mount --bind "$0/data" "$0/data" && mount -o remount,bind,ro "$0" &&'
        f' exec chroot "$0" setpriv --reuid {USER} --regid {USER} --clear-groups'
        ' --bounding-set=-all --no-new-privs "$@"'
    )
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, str(root), *config["Entrypoint"], *config["Cmd"]],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said


def test_the_image_is_small_and_serves_as_its_user_on_a_root_that_is_read_only(
    image: tuple[dict[str, Any], Path],
) -> None:
    config, root = image
    assert config["User"] == f"{USER}:{USER}"
    assert not list((root / "opt/remem").rglob("site-packages/pip"))
    taken = sum(path.lstat().st_size for path in (root / "opt/remem").rglob("*"))
    assert taken < 150_000_000
    with running(config, root) as process:
        assert process.stdout is not None
        said = list(takewhile(lambda line: not line.startswith("serving "), process.stdout))
        assert process.poll() is None, said
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(rf"^Uid:\s+{USER}\s+{USER}\b", status, re.MULTILINE)
        assert re.search(r"^CapBnd:\s+0+$", status, re.MULTILINE)
        health = config["Healthcheck"]["Test"]
        assert health[0] == "CMD"
        assert (
            subprocess.run(["chroot", str(root), f"/opt/remem/bin/{health[1]}", *health[2:]], check=False).returncode
            == 0
        )
    with pytest.raises(URLError):
        urllib.request.urlopen(f"{URL}/healthz")
    # What it wrote is its own, and lies in the volume.
    assert {path.stat().st_uid for path in (root / "data").iterdir()} == {int(USER)}
