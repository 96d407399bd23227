"""Reader of the record of an evaluation: one SQLite file, with the tables of docs/reference/record-schema.md.

    with records.open("evaluation.sqlite") as record:
        record.rates()                        # needs the extra `pandas`

It opens the file read-only, so it may read while the campaign goes on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    import pandas

OLDEST_SCHEMA = 9
"""The oldest schema that this reader understands. Newer ones keep its columns."""

RATES = """
SELECT path AS target, stage, name AS cell, phase, repeat, megabytes_per_second, operations_per_second, cores, invalid
FROM rate ORDER BY 1, 2, 3, 4, 5
"""
LATENCIES = """
SELECT target.path AS target, cell.stage, cell.name AS cell, sample.phase, histogram.kind, histogram.bucket,
       sum(histogram.count) AS count
FROM histogram JOIN sample ON sample.id = histogram.sample JOIN target ON target.id = sample.target
     JOIN cell ON cell.id = sample.cell JOIN campaign
WHERE sample.invalid IS NULL AND sample.repeat >= campaign.warm_up
GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
"""
RECORDINGS = """
SELECT target.path AS target, cell.stage, cell.name AS cell, sample.repeat, ingest.goal,
       ingest.frame_size * 1e3 / ingest.period AS rate_megabytes_per_second, ingest.due, ingest.stored,
       ingest.lost, ingest.late, ingest.longest_stall / 1e9 AS longest_stall_seconds, ingest.slots, ingest.slots_high,
       ingest.duration / 1e9 AS seconds, sample.invalid
FROM ingest JOIN sample ON sample.id = ingest.sample JOIN target ON target.id = sample.target
     JOIN cell ON cell.id = sample.cell ORDER BY 1, 2, 3, 4, sample.id
"""
SERIES = """
SELECT target.path AS target, cell.stage, cell.name AS cell, sample.phase, sample.repeat,
       series.bin * series.width / 1e9 AS seconds, series.bytes * 1e3 / series.width AS megabytes_per_second
FROM series JOIN sample ON sample.id = series.sample JOIN target ON target.id = sample.target
     JOIN cell ON cell.id = sample.cell ORDER BY 1, 2, 3, 4, 5, series.bin
"""


class RecordError(ValueError):
    """The file is no record, or its schema is older than this reader."""


def bucket_nanoseconds(bucket: int) -> int:
    """Return the least time in a bucket of the table `histogram`, in ns."""
    return bucket if bucket < 64 else (64 + bucket % 64) << (bucket // 64 - 1)


class Record:
    """The record of an evaluation. Close it, or use it as a context manager."""

    def __init__(self, path: Path | str) -> None:
        """Open the file read-only. Raises `RecordError` if it is no record."""
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path} is no file")
        self._connection = sqlite3.connect(f"file:{quote(str(self.path.resolve()))}?mode=ro", uri=True)
        try:
            (self.schema,) = self._connection.execute("PRAGMA user_version").fetchone()
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('campaign', 'rate')")
            is_record = tables.fetchone() == (2,)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise RecordError(f"{self.path} is no record: {error}") from error
        if not is_record or self.schema < OLDEST_SCHEMA:
            self._connection.close()
            raise RecordError(f"{self.path} is no record of schema {OLDEST_SCHEMA} or newer")

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return the rows of any query. It needs no extra."""
        cursor = self._connection.execute(query, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def frame(self, query: str, values: Sequence[Any] = ()) -> pandas.DataFrame:
        """Return the rows of any query as a DataFrame."""
        import pandas

        return pandas.read_sql_query(query, self._connection, params=tuple(values))

    def rates(self, with_invalid: bool = False) -> pandas.DataFrame:
        """Return the rate of each repeat that counts: target, stage, cell, phase, MB/s, operations/s, cores.

        With `with_invalid` also those that must not be used; the column `invalid` has the reason.
        """
        rates = self.frame(RATES)
        return rates if with_invalid else rates[rates["invalid"].isna()].drop(columns="invalid").reset_index(drop=True)

    def recordings(self) -> pandas.DataFrame:
        """Return the frames of each recording: due, stored, lost, late, the rate in MB/s and the longest stall in s."""
        return self.frame(RECORDINGS)

    def series(self) -> pandas.DataFrame:
        """Return the rate over time of each repeat, in MB/s."""
        return self.frame(SERIES)

    def latencies(self) -> pandas.DataFrame:
        """Return histograms of times over all repeats that count. `seconds` is the least time in a bucket."""
        times = self.frame(LATENCIES)
        times["seconds"] = times.pop("bucket").map(bucket_nanoseconds).astype(float) / 1e9
        return times

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(path: Path | str) -> Record:
    """Open the record of an evaluation read-only."""
    return Record(path)
