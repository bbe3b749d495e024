"""Finished measurements as lines of JSON, so that a stopped benchmark resumes. No torch.

The first line says what is measured; a file that says otherwise is refused rather than mixed.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from eagle2.bench.records import Measurement, Timed, Trial

FILE = "measurements.jsonl"


class Partial:
    """The file of one benchmark. heading: whatever must agree for measurements to belong together.

    Raises ValueError where the folder holds another benchmark's measurements, or lines that are none.
    """

    def __init__(self, folder: Path, heading: dict[str, object]) -> None:
        self.path = folder / FILE
        self.heading = json.loads(json.dumps(heading))  # as it would be read back
        folder.mkdir(parents=True, exist_ok=True)
        if not self.path.is_file():
            self.path.write_text(json.dumps(self.heading) + "\n", encoding="utf-8")

    def load(self) -> list[Measurement]:
        """What is there. A last line that was being written when the run stopped is cut off."""
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        lines = whole.decode().splitlines()
        if not lines or self._parsed(lines[0], 1) != self.heading:
            raise ValueError(
                f"{self.path} holds measurements of other models or settings; "
                "give another folder with --out, or delete it"
            )
        if len(whole) < len(text):
            self.path.write_bytes(whole)
        return [made for number, line in enumerate(lines[1:], start=2) for made in self._trial(line, number)]

    def add(self, measurements: list[Measurement]) -> None:
        """Append one trial's measurements, all of them or, if the run is stopped here, none that count."""
        body = [asdict(measurement) for measurement in measurements]
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(body, separators=(",", ":")) + "\n")

    def _trial(self, line: str, number: int) -> list[Measurement]:
        try:
            return [_measurement(body) for body in self._parsed(line, number)]
        except (TypeError, KeyError) as error:
            raise ValueError(f"line {number} of {self.path} is no trial ({error!r}); delete the file") from error

    def _parsed(self, line: str, number: int) -> object:
        try:
            return json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number} of {self.path} is no JSON ({error}); delete the file") from error


def _measurement(body: dict) -> Measurement:
    answer = Timed(**{**body["timed"], "ids": tuple(body["timed"]["ids"])})
    return Measurement(Trial(**body["trial"]), body["method"], answer, body["lossless"], body["near_ties"])
