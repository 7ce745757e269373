"""The manifests for Kubernetes: that they render, and what they promise. No cluster is asked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it has no types of its own

from remem_server.settings import Settings
from remem_server.web.serving import _GRACE_SECONDS

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"


@pytest.fixture(scope="module")
def rendered() -> str:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl here, which renders the manifests")
    return subprocess.run(
        ["kubectl", "kustomize", str(FOLDER)], check=True, stdout=subprocess.PIPE, text=True, timeout=60
    ).stdout


@pytest.fixture(scope="module")
def objects(rendered: str) -> dict[str, dict[str, Any]]:
    """Return the objects by kind; there is one of each."""
    found = list(yaml.safe_load_all(rendered))
    assert len({one["kind"] for one in found}) == len(found)
    return {one["kind"]: one for one in found}


@pytest.fixture(scope="module", params=["Deployment", "Job"])
def pod(objects: dict[str, dict[str, Any]], request: pytest.FixtureRequest) -> dict[str, Any]:
    template: dict[str, Any] = objects[request.param]["spec"]["template"]
    return template


def test_everything_is_in_the_one_namespace(objects: dict[str, dict[str, Any]]) -> None:
    assert set(objects) == {
        "ConfigMap", "Deployment", "Ingress", "Job", "Namespace", "NetworkPolicy", "PodDisruptionBudget", "Service",
    }  # fmt: skip
    assert {one["metadata"].get("namespace", "remem") for one in objects.values()} == {"remem"}


def test_the_manifests_fit_the_schemas_of_kubernetes(rendered: str, tmp_path: Path) -> None:
    program = shutil.which("kubernetes-validate")
    if program is None:
        pytest.skip("no kubernetes-validate here, which knows the schemas (pip install kubernetes-validate)")
    (tmp_path / "all.yaml").write_text(rendered, "utf-8")
    done = subprocess.run(
        [program, "--strict", str(tmp_path / "all.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_container_has_a_privilege_or_writes_outside_its_volumes(pod: dict[str, Any]) -> None:
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    # The user of the image (Containerfile), and a group that may read the Secret.
    assert [spec["securityContext"][name] for name in ("runAsUser", "runAsGroup", "fsGroup")] == [10001] * 3
    for container in spec["containers"] + spec.get("initContainers", []):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"]["cpu"]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}


def test_no_secret_is_rendered_and_its_example_holds_none(objects: dict[str, dict[str, Any]]) -> None:
    assert "Secret" not in objects
    example = yaml.safe_load((FOLDER / "secret.example.yaml").read_text("utf-8"))
    assert set(example["stringData"]) >= {"node.key", "pg_service.conf"}
    for line in "\n".join(example["stringData"].values()).splitlines():
        assert "password" not in line or line.endswith("=<the password>")
    assert example["metadata"]["name"] == "remem"


def test_servers_take_requests_when_ready_and_are_killed_only_when_they_do_not_answer(
    objects: dict[str, dict[str, Any]],
) -> None:
    (server,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert server["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert server["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert server["ports"] == [{"name": "http", "containerPort": Settings.model_fields["port"].default}]
    assert server["envFrom"] == [{"configMapRef": {"name": "remem"}}]


def test_an_upgrade_and_an_emptied_node_leave_servers_running(objects: dict[str, dict[str, Any]]) -> None:
    spec = objects["Deployment"]["spec"]
    assert spec["replicas"] == 3
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    spread = spec["template"]["spec"]["topologySpreadConstraints"]
    assert {one["topologyKey"] for one in spread} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    budget = objects["PodDisruptionBudget"]["spec"]
    assert budget["maxUnavailable"] == 1
    labels = spec["template"]["metadata"]["labels"]
    for selector in (
        spec["selector"]["matchLabels"],
        budget["selector"]["matchLabels"],
        objects["Service"]["spec"]["selector"],
    ):
        assert selector.items() <= labels.items()


def test_a_stop_waits_until_the_server_is_left_alone_and_has_finished(objects: dict[str, dict[str, Any]]) -> None:
    spec = objects["Deployment"]["spec"]["template"]["spec"]
    (_sleep, seconds) = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert spec["terminationGracePeriodSeconds"] > int(seconds) + _GRACE_SECONDS


def test_the_policy_holds_for_servers_and_the_migration(
    objects: dict[str, dict[str, Any]], pod: dict[str, Any]
) -> None:
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["policyTypes"] == ["Ingress", "Egress"]


def test_a_migration_of_its_own_goes_before(objects: dict[str, dict[str, Any]]) -> None:
    (migrate,) = objects["Job"]["spec"]["template"]["spec"]["containers"]
    assert migrate["args"] == ["migrate"]
    (server,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert migrate["image"] == server["image"]


def test_the_ingress_lets_only_what_is_for_everyone_through(objects: dict[str, dict[str, Any]]) -> None:
    (rule,) = objects["Ingress"]["spec"]["rules"]
    open_paths = {path["path"]: path["pathType"] for path in rule["http"]["paths"]}
    assert open_paths == {
        "/commons": "Prefix", "/.well-known/remem": "Exact", "/healthz": "Exact", "/docs": "Exact",
        "/openapi.json": "Exact",
    }  # fmt: skip


def test_every_setting_is_one(objects: dict[str, dict[str, Any]]) -> None:
    named = [name for name in objects["ConfigMap"]["data"] if name.startswith("REMEM_")]
    assert {name.removeprefix("REMEM_").lower() for name in named} <= set(Settings.model_fields)
