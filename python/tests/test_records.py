"""Records of evaluations and journals of recordings, against the program's own reports."""

import csv
import json
import sqlite3
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import PATIENCE, ROOT, Service, awaited, free_port, program

from nilometer_control import Recorder, journal, records

Send = Callable[..., "subprocess.Popen[bytes]"]
KEPT = ROOT / "tests/data"
"""A record and a recording of the repository."""


def reported(command: str, *arguments: object) -> Any:
    """Return the JSON that the program prints."""
    words = [program(), command, *map(str, arguments)]
    return json.loads(subprocess.run(words, capture_output=True, check=False).stdout)


@pytest.fixture(params=[9, 10], ids="schema {}".format)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The record of an evaluation: a file of SQLite, of each schema that is kept."""
    made = tmp_path / "evaluation.sqlite"
    with sqlite3.connect(made) as database:
        database.executescript((KEPT / f"record-{request.param}.sql").read_text())
    database.close()
    return made


@pytest.fixture
def record(path: Path) -> Iterator[records.Record]:
    with records.open(path) as record:
        yield record


def test_rates_are_those_of_the_report(record: records.Record, path: Path) -> None:
    printed = subprocess.run([program(), "report", path, "--format", "csv"], capture_output=True, text=True, check=True)
    rows = list(csv.DictReader(printed.stdout.splitlines()))
    rates = record.rates(with_invalid=True).set_index(["target", "stage", "phase", "repeat"])
    assert rows
    for row in rows:
        rate = rates.loc[(row["target"], row["stage"], row["phase"], int(row["repeat"]))]
        assert rate["megabytes_per_second"] == pytest.approx(float(row["rate_bytes_per_s"]) / 1e6)
    assert "invalid" not in record.rates()


def test_a_recording_and_its_latencies_are_figures(record: records.Record) -> None:
    (camera,) = record.recordings().to_dict("records")
    assert (camera["due"], camera["stored"], camera["lost"]) == (200, 200, 0)
    assert camera["rate_megabytes_per_second"] == pytest.approx(128 / 0.01 / 1e6)
    assert camera["longest_stall_seconds"] == pytest.approx(0.010598670)
    latencies = record.latencies()
    ingest = latencies[(latencies["phase"] == "ingest") & (latencies["kind"] == "latency")]
    (known,) = record.rows("SELECT sum(count) AS count FROM histogram WHERE sample = 5")
    assert ingest["count"].sum() == known["count"] > 100
    assert ingest["seconds"].is_monotonic_increasing
    series = record.series()
    assert (series["megabytes_per_second"] >= 0).all() and len(series) > 0


def test_buckets_are_those_of_the_schema() -> None:
    assert [records.bucket_nanoseconds(bucket) for bucket in (0, 63, 64, 65, 128, 191)] == [0, 63, 64, 65, 128, 254]


def test_duckdb_reads_the_frames_of_pandas(record: records.Record) -> None:
    import duckdb

    rates = record.rates()
    fastest = duckdb.sql("SELECT max(megabytes_per_second) FROM rates WHERE target = '/data/kept'").fetchall()[0][0]
    assert fastest == pytest.approx(rates[rates["target"] == "/data/kept"]["megabytes_per_second"].max())


def test_other_files_are_no_records(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("no database, but long enough to be none")
    with pytest.raises(records.RecordError, match="is no record"):
        records.open(other)
    with pytest.raises(FileNotFoundError):
        records.open(tmp_path / "none")
    sqlite3.connect(tmp_path / "empty").close()
    with pytest.raises(records.RecordError, match="schema 9 or newer"):
        records.open(tmp_path / "empty")


def test_the_kept_recording_is_read_from_its_journals() -> None:
    directory = KEPT / "journal-8"
    recording = journal.open(directory)
    (known,) = reported("scan", directory, "--json")
    assert (len(recording.lanes), len(recording.frames), recording.due) == (2, known["frames"], 4)
    assert f"{recording.lanes[0].recording:016x}" == known["recording"]
    assert sum(frame.size for frame in recording.frames.values()) == known["bytes"]
    assert recording.is_whole and recording.missing == []
    for frame in recording.frames.values():
        assert frame.encoding == 0 and frame.checksum in (None, zlib.crc32(frame.stored()))


@pytest.mark.parametrize("keys", [{}, {"frames_per_file": "3", "checksums": "crc32"}, {"format": "raw"}])
def test_a_recording_of_a_series_is_read_from_its_journals(
    make_service: Callable[..., Service], send: Send, keys: dict[str, str]
) -> None:
    service = make_service()
    recorder = Recorder(service.url)
    recorder.arm("scan")
    send(service.stream, "--images", 7, "--announce", 9, "--die")
    recorder.wait_for(("configured", "failed"), PATIENCE)
    recording = journal.open(service.data / "scan")
    (known,) = reported("verify", service.data / "scan", "--json")
    assert (recording.due, len(recording.frames)) == (known["expected"], known["right"])
    assert len(recording.missing) == known["missing"]
    dues = [frame.due for frame in recording.frames.values()]
    assert dues == sorted(dues)
    for frame in recording.frames.values():
        assert len(frame.stored()) == frame.length


def test_missing_packets_are_read_from_the_journals(tmp_path: Path) -> None:
    port = free_port()
    instrument = tmp_path / "raw.toml"
    instrument.write_text(
        f'name = "raw"\ntitle = "t"\nsource = "t"\nshape = [1000]\npixel = "uint8"\nframe_rate = "1 kHz"\n'
        f'[packets]\nport = {port}\n[packets.format.raw]\npayload = "1000 B"\n'
    )
    log = tmp_path / "log"
    receive = [program(), "record", instrument, "--to", tmp_path, "--name", "packets", "--buffer", "32 MiB"]
    with log.open("w") as said:
        recorder = subprocess.Popen([*receive, "--silence", "1 s"], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        awaited(lambda: "listening" in log.read_text(), "the recorder listens")
        address = f"udp://127.0.0.1:{port}"
        faults = ["--loss", "1 %", "--seed", "1"]
        simulate = [program(), "simulate", instrument, "--to", address, "--frames", "3000", *faults]
        subprocess.run(simulate, check=False, capture_output=True)
        awaited(lambda: recorder.poll() is not None, "the recording ends")
    finally:
        recorder.kill()
        recorder.wait()
    recording = journal.open(tmp_path / "packets")
    (known,) = reported("scan", tmp_path / "packets", "--json")
    assert recording.missing_packets == known["missing_by_source"][0]["missing_packets"] > 0
    assert sum(frame.size for frame in recording.frames.values()) == known["bytes"]
    assert '"format":"raw"' in recording.lanes[0].stream


def test_other_directories_have_no_recording(tmp_path: Path) -> None:
    with pytest.raises(journal.JournalError, match="no recording in"):
        journal.open(tmp_path)
    (tmp_path / "x.0.journal").write_bytes(bytes(128))
    with pytest.raises(journal.JournalError, match="is no journal"):
        journal.open(tmp_path)


def test_a_torn_journal_counts_up_to_the_tear(tmp_path: Path) -> None:
    whole = (KEPT / "journal-8/kept.0.journal").read_bytes()
    (tmp_path / "kept.0.journal").write_bytes(whole)
    count = len(journal.read(tmp_path / "kept.0.journal").frames)
    torn = bytearray(whole)
    frames = [at for at in range(0, len(whole), 64) if whole[at + 4] == 12]
    torn[frames[-1] + 20] ^= 1
    (tmp_path / "kept.0.journal").write_bytes(torn)
    assert len(journal.read(tmp_path / "kept.0.journal").frames) == count - 1


def test_a_journal_in_several_files_is_read_to_its_end(tmp_path: Path) -> None:
    whole = (KEPT / "journal-8/kept.0.journal").read_bytes()
    (tmp_path / "kept.0.journal").write_bytes(whole)
    known = journal.read(tmp_path / "kept.0.journal")
    for number, begin in enumerate(range(0, len(whole), 192)):
        name = "kept.0.journal" if number == 0 else f"kept.0.journal.{number:08}"
        (tmp_path / name).write_bytes(whole[begin : begin + 192])
    read = journal.read(tmp_path / "kept.0.journal")
    assert (read.frames, read.has_ended) == (known.frames, True) and len(whole) > 192
    (tmp_path / "kept.0.journal.00000001").unlink()
    assert len(journal.read(tmp_path / "kept.0.journal").frames) < len(known.frames)
