"""The dashboard and the alert rules ask for what a commons measures, and tell trouble from a quiet day."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]  # it has no types of its own

from remem_testkit.postgres import fresh_database
from remem_testkit.server import serve

FOLDER = Path(__file__).parents[2] / "deploy" / "observability"
ALERTS = FOLDER / "alerts.yaml"
RULES: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
# Expressions and what they are asked of, by the title of the panel or the name of the rule.
EXPRESSIONS = {
    **{rule["alert"]: [rule["expr"]] for rule in RULES},
    **{panel["title"]: [target["expr"] for target in panel["targets"]] for panel in DASHBOARD["panels"]},
}
# What happens minute by minute, and the alert that it must raise, if any.
STORIES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'up{{job="remem"}}', values: '1x30'}}
      - {{series: 'remem_requests_total{{status="200"}}', values: '0+60x30'}}
      - {{series: 'remem_requests_total{{status="500"}}', values: '0+60x30'}}
      - {{series: 'remem_refused_total{{code="too_many_requests"}}', values: '0+6000x30'}}
      - {{series: 'remem_replication_age_seconds', values: '90x30'}}
    alert_rule_test:
      - {{eval_time: 30m, alertname: RememDown, exp_alerts: []}}
      - {{eval_time: 5m, alertname: RememFails, exp_alerts: []}}
    promql_expr_test:
      - expr: ALERTS{{alertstate="firing"}}
        eval_time: 30m
        exp_samples:
          - {{labels: 'ALERTS{{alertname="RememFails", alertstate="firing", severity="page"}}', value: 1}}
          - {{labels: 'ALERTS{{alertname="RememAttacked", alertstate="firing", severity="ticket"}}', value: 1}}
          - {{labels: 'ALERTS{{alertname="RememReplicaBehind", alertstate="firing", severity="ticket"}}', value: 1}}
  - interval: 1m
    input_series:
      - {{series: 'up{{job="remem"}}', values: '1x10 0x10'}}
      - {{series: 'remem_requests_total{{status="200"}}', values: '0+60x20'}}
      - {{series: 'remem_lessons{{state="revoked"}}', values: '3x10 40x10'}}
      - {{series: 'remem_records', values: '9000x10 2000x10'}}
    promql_expr_test:
      - expr: ALERTS{{alertstate="firing"}}
        eval_time: 20m
        exp_samples:
          - {{labels: 'ALERTS{{alertname="RememDown", alertstate="firing", job="remem", severity="page"}}', value: 1}}
          - {{labels: 'ALERTS{{alertname="RememRevocations", alertstate="firing", severity="ticket"}}', value: 1}}
          - {{labels: 'ALERTS{{alertname="RememShrank", alertstate="firing", severity="ticket"}}', value: 1}}
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what a commons over PostgreSQL with a replica measures: the kind of each metric by its name."""
    data = tmp_path_factory.mktemp("data")
    with fresh_database() as url, serve(data, database_url=url, replica_url=url) as commons:
        text = httpx.get(f"{commons.url}/metrics").raise_for_status().text
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_only_what_a_commons_measures_is_asked_for(name: str, measured: dict[str, str]) -> None:
    for metric in re.findall(r"\bremem_[a-z_]+", " ".join(EXPRESSIONS[name])):
        if metric.endswith("_bucket"):
            assert measured[metric.removesuffix("_bucket")] == "histogram"
        else:
            assert measured[metric] == ("counter" if metric.endswith("_total") else "gauge")


def test_every_refusal_that_a_rule_names_has_that_code() -> None:
    from remem.protocol.errors import ProtocolError
    from remem_server.errors import CommonsError

    def codes(kind: type[Any]) -> Iterator[str]:
        yield from (kind.__dict__.get("code", ""), *(code for one in kind.__subclasses__() for code in codes(one)))

    known = {*codes(ProtocolError), *codes(CommonsError)}
    named = re.findall(r'code=~?"([a-z_|]+)"', " ".join(rule["expr"] for rule in RULES))
    assert named
    assert {code for one in named for code in one.split("|")} <= known


def promtool(*arguments: str) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool here (apt-get install prometheus)")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_understands_the_rules() -> None:
    promtool("check", "rules", str(ALERTS))


def test_the_alerts_tell_trouble_from_a_quiet_day(tmp_path: Path) -> None:
    (tmp_path / "stories.yaml").write_text(STORIES.format(rules=ALERTS), "utf-8")
    promtool("test", "rules", str(tmp_path / "stories.yaml"))


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert max(x for x, _y in cells) < 24
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
