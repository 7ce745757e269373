"""The compose file: what it promises about secrets, order and reach. No container is started here."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it has no types of its own

from remem_server.settings import Settings
from remem_server.web.serving import _GRACE_SECONDS

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose" / "compose.yaml"
COMMONS: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMMONS["services"]


def test_no_password_is_in_the_file_or_in_an_environment() -> None:
    for service in SERVICES.values():
        for name, value in service["environment"].items():
            assert not re.search("PASSWORD|SECRET|TOKEN", name) or name.endswith("_FILE")
            assert "@" not in value
    assert {Path(secret["file"]).parts[0] for secret in COMMONS["secrets"].values()} == {"secrets"}
    assert "/secrets/" in (COMPOSE.parent / ".gitignore").read_text("utf-8").splitlines()


def test_every_secret_that_a_service_reads_is_given_to_it_and_to_no_other() -> None:
    for name in COMMONS["secrets"]:
        reading = {one for one, service in SERVICES.items() if f"/run/secrets/{name}" in str(service["environment"])}
        given = {one for one, service in SERVICES.items() if name in service.get("secrets", [])}
        assert reading == given != set()


@pytest.mark.parametrize(("service", "behind"), [("server", "postgres"), ("caddy", "server")])
def test_each_waits_until_what_it_needs_is_well(service: str, behind: str) -> None:
    assert SERVICES[service]["depends_on"] == {behind: {"condition": "service_healthy"}}
    assert SERVICES[behind]["healthcheck"]["test"][0] == "CMD"


def test_only_the_proxy_is_reached_from_outside_and_the_database_by_the_server_alone() -> None:
    assert {name for name, service in SERVICES.items() if "ports" in service} == {"caddy"}
    assert {name for name, service in SERVICES.items() if "back" in service["networks"]} == {"server", "postgres"}
    assert COMMONS["networks"]["back"] == {"internal": True}


def test_the_server_believes_the_network_of_the_proxy_and_no_address_outside() -> None:
    believed = ip_network(SERVICES["server"]["environment"]["REMEM_PROXIES"])
    assert [str(believed)] == [part["subnet"] for part in COMMONS["networks"]["front"]["ipam"]["config"]]
    assert believed.is_private
    assert ip_address("8.8.8.8") not in believed


@pytest.mark.parametrize("service", ["server", "caddy"])
def test_what_faces_strangers_has_a_read_only_root_and_no_privileges(service: str) -> None:
    found = SERVICES[service]
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    assert found.get("cap_add", []) == (["NET_BIND_SERVICE"] if service == "caddy" else [])
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert "mem_limit" in found


def test_a_stop_waits_until_the_server_has_finished() -> None:
    assert int(SERVICES["server"]["stop_grace_period"].removesuffix("s")) > _GRACE_SECONDS


def test_every_file_that_it_names_is_there_and_every_setting_is_one() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in COMMONS["volumes"] or (COMPOSE.parent / source).is_file()
    build = SERVICES["server"]["build"]
    assert (COMPOSE.parent / build["context"] / build["dockerfile"]).is_file()
    named = {name for name in SERVICES["server"]["environment"] if name.startswith("REMEM_")}
    assert {name.removeprefix("REMEM_").lower() for name in named} <= set(Settings.model_fields)
    for name in SERVICES["caddy"]["environment"]:
        assert f"{{${name}" in (COMPOSE.parents[1] / "proxy" / "Caddyfile").read_text("utf-8")
