"""The declared losses are one file a system, which `lab verify --update` writes from its findings."""

import json
from pathlib import Path

import pytest

from harness import registry
from harness.fidelity import snapshot
from harness.model import Fate, Finding, LabError, Origin, Transport
from harness.registry.losses import losses_text, read_losses

SYSTEMS = ("clickhouse", "postgres")
LOSING = registry.one("postgres.psycopg.read_pandas_rows")
EXACT = registry.one("postgres.psycopg.write_polars_tuned")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the declared losses of Postgres, which is updated instead of them."""
    copy = tmp_path / "losses.json"
    copy.write_bytes(registry.losses_file("postgres").read_bytes())
    monkeypatch.setattr(registry, "losses_file", lambda system: copy)
    return copy


def declared(file: Path) -> dict[str, dict[str, str]]:
    read_losses.cache_clear()
    return {transport: dict(losses) for transport, losses in read_losses(file).items()}


def finding(entry: Transport, kind: str, fate: Fate) -> Finding:
    return Finding(entry, kind, fate, entry.lossy.get(kind, ""))


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_files_are_as_they_are_written_and_name_only_transports_that_exist(system: str) -> None:
    file = registry.losses_file(system)
    losses = read_losses(file)
    assert losses_text(losses) == file.read_text(encoding="utf-8")
    assert {name for name in losses if not registry.one(name).moves_a_frame} == set()
    assert len(losses) > 100


def test_a_name_is_in_its_own_line_and_what_loses_the_same_is_listed_once() -> None:
    losses = {"b.x": {"nan": "changed", "tab": "refused"}, "a.y": {}, "a.x": {"tab": "refused", "nan": "changed"}}
    text = losses_text(losses)
    assert json.loads(text) == [{"transports": ["a.x", "b.x"], "changed": ["nan"], "refused": ["tab"]}]
    assert [line.strip(' ",') for line in text.splitlines() if ":" not in line and line.strip(" ],[{}")] == [
        "a.x",
        "b.x",
        "nan",
        "tab",
    ]


@pytest.mark.parametrize(
    "groups",
    [
        [{"transports": ["a"], "changed": ["nan"], "refused": ["nan"]}],
        [{"transports": ["a"], "changed": ["nan"]}, {"transports": ["a"], "refused": ["nan"]}],
    ],
)
def test_a_kind_has_one_fate(tmp_path: Path, groups: list[dict[str, list[str]]]) -> None:
    (tmp_path / "losses.json").write_text(json.dumps(groups))
    with pytest.raises(ValueError, match="a loses nan twice"):
        read_losses(tmp_path / "losses.json")


def test_a_declared_loss_that_no_longer_happens_goes_and_a_new_one_comes(file: Path) -> None:
    before = declared(file)
    (gone, *_), stays = before[LOSING.id], len(before[LOSING.id]) - 1
    findings = [
        finding(LOSING, gone, Fate.EXACT),
        finding(EXACT, "nan", Fate.CHANGED),
        finding(EXACT, "tab", Fate.EXACT),
    ]
    assert snapshot.update(findings) == [file]
    after = declared(file)
    assert gone not in after.get(LOSING.id, {})
    assert len(after.get(LOSING.id, {})) == stays
    assert after.pop(EXACT.id) == {"nan": "changed"}
    assert {name: after[name] for name in after if name != LOSING.id} == {
        name: before[name] for name in before if name != LOSING.id
    }


def test_what_is_as_declared_or_could_not_be_tried_changes_nothing(file: Path) -> None:
    text = file.read_text()
    findings = [finding(LOSING, kind, Fate(fate)) for kind, fate in LOSING.lossy.items()]
    findings += [finding(LOSING, kind, Fate.UNAVAILABLE) for kind in LOSING.lossy]
    findings += [finding(LOSING, "nan", Fate.UNVERIFIABLE), finding(EXACT, "nan", Fate.CONVERTED)]
    assert snapshot.update(findings) == []
    assert file.read_text() == text


def test_a_refusal_that_is_the_servers_is_not_declared(file: Path) -> None:
    refused = Finding(EXACT, "nul_character", Fate.REFUSED, "refused")
    assert snapshot.update([refused]) == []
    assert snapshot.losses_of(EXACT, [refused]) == {}
    assert snapshot.losses_of(EXACT, [finding(EXACT, "nul_character", Fate.CHANGED)]) == {"nul_character": "changed"}


def test_of_a_type_that_is_refused_no_more_is_declared(file: Path) -> None:
    moved = finding(LOSING, "timestamps_elsewhere", Fate.CHANGED)
    assert "timestamps_elsewhere" in snapshot.losses_of(LOSING, [moved])
    refused = finding(LOSING, "timestamps", Fate.REFUSED)
    assert "timestamps_elsewhere" not in snapshot.losses_of(LOSING, [moved, refused])


def test_a_transport_that_is_gone_goes(file: Path) -> None:
    before = declared(file)
    file.write_text(losses_text(before | {"postgres.psycopg.write_gone": {"nan": "changed"}}))
    assert snapshot.update([finding(EXACT, "tab", Fate.EXACT)]) == [file]
    assert declared(file) == before


def test_a_control_has_the_losses_of_what_it_repeats() -> None:
    controls = [entry for entry in registry.select() if entry.origin is Origin.CONTROL]
    assert controls
    for entry in controls:
        assert entry.lossy == registry.one(entry.id.removesuffix("_control")).lossy
        assert entry.id not in read_losses(registry.losses_file(entry.system))


def test_a_file_that_cannot_be_written_is_one_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "losses_file", lambda system: file.parent / "none" / "losses.json")
    with pytest.raises(LabError, match=r"^cannot write to .*losses.json: No such file"):
        snapshot.update([finding(EXACT, "nan", Fate.CHANGED)])
