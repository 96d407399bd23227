"""The clients against a real recorder: every order, every error, and both ways to wait."""

import asyncio
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from loopback import PATIENCE, Service, awaited

from nilometer_control import (
    AsyncRecorder,
    DumpState,
    InvalidOrder,
    NotAllowed,
    Recorder,
    RecorderTimeout,
    RecorderUnreachable,
    RecordingFailed,
    State,
    WrongState,
)

CONTROL = "0123456789abcdef0123456789abcdef"
MONITOR = "fedcba9876543210fedcba9876543210"
"""Tokens of a client that may command, and of one that may only ask."""
Send = Callable[..., "subprocess.Popen[bytes]"]


def test_a_series_is_recorded_on_command(service: Service, recorder: Recorder, send: Send) -> None:
    assert recorder.status().state is State.CONFIGURED
    armed = recorder.arm("scan-1", metadata={"PI": "Curie"})
    assert (armed.state, armed.name, armed.is_busy) == (State.WAITING, "scan-1", True)
    send(service.stream, "--images", 5)
    ended = recorder.wait_for("configured", PATIENCE)
    assert ended.recordings == 1
    assert ended.last and ended.recording
    assert (ended.last.name, ended.last.count, ended.last.missing, ended.last.fault) == ("scan-1", 5, 0, None)
    assert ended.last.paths == (service.data / "scan-1",)
    assert (ended.recording.acknowledged, ended.recording.durable, ended.recording.announced) == (5, 5, 5)
    frame = recorder.latest_frame()
    assert frame and (frame.frame, frame.width, frame.height, len(frame.codes)) == (4, 80, 64, 80 * 64)
    # Codes are logarithmic between `low` and `high`: the first pixel is the lowest of a stamped image.
    assert abs((frame.value_of(frame.codes[-1]) or 0) - (40000 + 6379)) < 0.05 * 46379


def test_the_file_stands_in_the_status(service: Service, recorder: Recorder, send: Send) -> None:
    recorder.arm("scan-2")
    send(service.stream, "--images", 3)
    ended = recorder.wait_for("configured", PATIENCE)
    assert ended.recording and ended.recording.file
    file = ended.recording.file
    assert file.readable == service.data / "scan-2" / "scan-2.h5"
    assert (file.dataset, file.shape, file.dtype, file.chunk) == ("/entry/data/data", (64, 80), "<u4", (1, 64, 80))
    assert (file.master, file.series_id, file.frames_acknowledged, file.frames_durable) == (None, 7, 3, 3)


def test_events_tell_the_state_and_the_end(service: Service, recorder: Recorder, send: Send) -> None:
    recorder.arm("scan-3")
    send(service.stream, "--images", 4)
    seen = []
    for event in recorder.events(PATIENCE):
        seen.append(event)
        if event.ended:
            break
    assert seen[0].status and seen[0].status.name == "scan-3"
    assert seen[-1].ended and (seen[-1].ended.name, seen[-1].ended.count) == ("scan-3", 4)


def test_a_part_of_a_recording_is_dumped(make_service: Callable[..., Service], send: Send, tmp_path: Path) -> None:
    service = make_service("--dumps", str(tmp_path))
    recorder = Recorder(service.url)
    recorder.arm("scan-4")
    send(service.stream, "--images", 5)
    recorder.wait_for("configured", PATIENCE)
    ours = recorder.wait_for_dump(recorder.dump(tmp_path, 1, 3, name="part").id, PATIENCE)
    assert (ours.state, ours.frames, ours.overtaken_frames) == (DumpState.COMPLETE, 2, 0)
    assert ours.path == tmp_path / "part.raw"
    assert ours.path.stat().st_size == ours.bytes == 2 * 64 * 80 * 4

    async def dump() -> None:
        theirs = AsyncRecorder(service.url)
        second = await theirs.dump(tmp_path, begin="+0s", name="all")
        assert (await theirs.wait_for_dump(second.id, PATIENCE)).frames == 5
        assert [dump.id for dump in await theirs.dumps()] == [1, 2]
        assert (await theirs.end_dump(2)).state is DumpState.COMPLETE

    asyncio.run(dump())
    with pytest.raises(RecordingFailed, match="exists"):
        recorder.wait_for_dump(recorder.dump(tmp_path, name="part").id, PATIENCE)
    with pytest.raises(InvalidOrder, match="--dumps"):
        recorder.dump("/")
    with pytest.raises(InvalidOrder, match="no data streams"):
        recorder.dump(tmp_path, name="of-a-stream", data_stream="A")
    with pytest.raises(InvalidOrder, match="no dump of this number"):
        recorder.end_dump(9)
    with pytest.raises(ValueError, match="zone"):
        recorder.dump(tmp_path, datetime(2026, 11, 28))


def test_the_service_describes_itself(recorder: Recorder) -> None:
    assert {"/status", "/arm", "/events"} <= set(recorder.openapi()["paths"])


def test_errors_have_the_sentence_of_the_service(recorder: Recorder) -> None:
    with pytest.raises(WrongState, match="arm it first"):
        recorder.start()
    with pytest.raises(InvalidOrder, match="unknown key `nme`, expected one of"):
        recorder.arm(nme="x")
    with pytest.raises(RecorderTimeout, match="not recording within 3 s: it is configured"):
        recorder.wait_for(State.RECORDING, 3)


def test_a_service_that_is_gone_is_unreachable(service: Service, recorder: Recorder) -> None:
    service.kill()
    with pytest.raises(RecorderUnreachable, match="does not answer"):
        recorder.status()
    with pytest.raises(RecorderUnreachable, match="does not answer"):
        asyncio.run(AsyncRecorder(service.url).status())


def test_a_recorder_that_is_killed_ends_the_wait(service: Service, recorder: Recorder) -> None:
    recorder.arm("scan-4")

    async def killed() -> None:
        waits = asyncio.create_task(AsyncRecorder(service.url).wait_for("recording", PATIENCE))
        await asyncio.sleep(0.3)
        service.kill()
        await waits

    with pytest.raises(RecorderUnreachable):
        asyncio.run(killed())


def test_a_recording_without_frames_fails_with_its_reason(recorder: Recorder) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=10)
    recorder.arm("scan-5", stop=f"{soon:%Y-%m-%dT%H:%M:%SZ}")
    with pytest.raises(RecordingFailed, match="before a series began"):
        recorder.wait_for("recording", PATIENCE)


def test_asyncio_clients_do_the_same(service: Service, send: Send) -> None:
    async def record() -> None:
        recorder = AsyncRecorder(service.url)
        await recorder.configure(listen=service.stream)
        assert (await recorder.arm("scan-6", metadata={"PI": "Curie"})).state is State.WAITING
        send(service.stream, "--images", 6)
        ended = await recorder.wait_for(("configured", "failed"), PATIENCE)
        assert ended.last and ended.last.count == 6
        frame = await recorder.latest_frame()
        assert frame and frame.frame == 5
        with pytest.raises(WrongState, match="arm it first"):
            await recorder.start()
        with pytest.raises(RecorderTimeout, match="it is configured"):
            await recorder.wait_for("recording", 3)

    asyncio.run(record())


def test_a_token_and_a_certificate_let_a_client_in(make_service: Callable[..., Service], tmp_path: Path) -> None:
    key, certificate, tokens = (tmp_path / name for name in ("key.pem", "certificate.pem", "tokens"))
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = ["openssl", "req", "-x509", *curve, "-days", "1"]
    named = ["-subj", "/CN=recorder", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, *named, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tokens.write_text(f"control {CONTROL}\nmonitor {MONITOR} read\n")
    tokens.chmod(0o600)
    key.chmod(0o600)
    service = make_service("--tls-certificate", str(certificate), "--tls-key", str(key), "--tokens", str(tokens))
    ours = Recorder(service.url, token=CONTROL, ca=certificate)
    assert ours.arm("scan-7").state is State.WAITING
    assert asyncio.run(AsyncRecorder(service.url, CONTROL, certificate).status()).name == "scan-7"
    reader = Recorder(service.url, token=MONITOR, ca=certificate)
    assert reader.status().name == "scan-7"
    with pytest.raises(NotAllowed):
        reader.stop()
    with pytest.raises(NotAllowed):
        Recorder(service.url, ca=certificate).status()
    with pytest.raises(RecorderUnreachable, match="certificate"):
        Recorder(service.url, token=CONTROL).status()


def test_an_address_that_would_show_the_token_is_refused() -> None:
    with pytest.raises(ValueError, match="use https"):
        Recorder("http://10.0.2.1:9620", token="secret")
    with pytest.raises(ValueError, match="is no address"):
        Recorder("10.0.2.1:9620")


def test_a_sender_that_dies_leaves_its_images(service: Service, recorder: Recorder, send: Send) -> None:
    recorder.arm("scan-8")
    sender = send(service.stream, "--images", 4, "--announce", 9, "--die")
    awaited(lambda: sender.poll() is not None, "the sender dies")
    ended = recorder.wait_for(("configured", "failed"), PATIENCE)
    assert ended.last and (ended.last.count, ended.last.missing) == (4, 5)
