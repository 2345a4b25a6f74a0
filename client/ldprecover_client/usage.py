"""Usage statistics: a program answers a series of rounds or forms once a period."""

from __future__ import annotations

import math
import os
import secrets
import time
import tomllib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from ldprecover.items import label_indices
from ldprecover.rounds.parameters import RoundParameters
from ldprecover_client.answers import Round
from ldprecover_client.calls import check_reference
from ldprecover_client.errors import (
    ArgumentError,
    ClientError,
    RefusedError,
    UnknownItemError,
)
from ldprecover_client.http import Client, Transport, server_url
from ldprecover_client.ledger import MAX_TOTAL_EPSILON, Entry, Ledger, Schedule
from ldprecover_client.reporter import Reporter, submit_entry
from ldprecover_client.retries import Retries

__all__ = ["Usage"]

_DAY = 86_400.0
_TIMEOUT = 5.0  # seconds of a request
_CLOSED = (404, 409, 410)  # status if a round is closed or deleted

Answers = str | Mapping[Any, str]
T = TypeVar("T")


class Usage:
    """Reports a program's usage to the open round or form of a series, once in each period.

    The first answer is due at a random time of the first period, each other one a period later by
    this machine's clock, whatever the answers are. Then one question is drawn, and its value is
    perturbed and written to the ledger before it is sent. A try that fails is repeated a day later
    with the same bytes, in the open round of the series if that of the first try is closed.
    Requests are made only for an answer that is due and by `preview`, and none while the
    environment has DO_NOT_TRACK or CI, or after `off`.

        form = {"question": "Which system?", "items": ["Linux", "Windows", "another"]}
        usage = Usage(url, "plotter", form)
        usage.report("Linux")

    `every` is the period. `form` is the TOML file that opened the series, its dictionary, or one
    question with its `epsilon`. A round or form that lacks one of its questions or items, asks for
    a larger epsilon (1 by default), or takes tickets or keys gets no answer. `limit` is the largest
    sum of epsilon over all reports of `ledger`, a file (default: that of `Ledger`).
    `transport` and `clock` replace the network and `time.time`. Raises ParameterError for arguments
    that no report can have, and what reading the file raises.
    """

    def __init__(
        self,
        url: str,
        series: str,
        form: str | os.PathLike[str] | Mapping[str, Any],
        *,
        every: timedelta = timedelta(days=91),
        limit: float = MAX_TOTAL_EPSILON,
        ledger: str | os.PathLike[str] | None = None,
        transport: Transport | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url, self._series = server_url(url), check_reference(series)
        if not isinstance(form, Mapping):
            form = tomllib.loads(Path(form).read_text(encoding="utf-8-sig"))
        self._epsilon = form.get("epsilon", 1.0)
        self._questions = {
            each.get("question"): RoundParameters("grr", self._epsilon, each.get("items", ())).items
            for each in form.get("questions", [form])
        }
        self._every, self._limit, self._path = every.total_seconds(), limit, ledger
        if self._every < 1 or not limit >= self._epsilon:
            raise ArgumentError("every must be a second or more, and limit at least epsilon")
        self._transport, self._clock = transport, clock

    def report(self, answers: Answers) -> Thread:
        """Report in a daemon thread if an answer is due; return the thread, which ends in seconds.

        `answers` has a label for each question; for a single question it may be the label alone.
        Raises UnknownItemError for other questions, and for a label that is not in the program's
        form, due or not; nothing else.
        """
        thread = Thread(target=self._try, args=(self._report, self._checked(answers)), daemon=True)
        with suppress(RuntimeError):  # while the interpreter ends no thread begins
            thread.start()
        return thread

    def preview(self, answers: Answers) -> Entry | None:
        """Return the answer that is sent next, or None where `log` says why not.

        It is drawn, and its epsilon spent, once: until it is sent, later answers do not change it.
        Blocks for seconds, half a minute at most. Raises as `report` does.
        """
        shown: list[Entry | None] = []
        checked = self._checked(answers)
        # A thread, since a server may send headers slowly for ever.
        draw = Thread(target=lambda: shown.append(self._try(self._answer, checked)), daemon=True)
        draw.start()
        draw.join(6 * _TIMEOUT)
        return shown[0] if shown else None

    def off(self) -> bool:
        """Send nothing until `on`, and delete an unsent answer; return whether that is on disk."""
        return self._try(self._switch, True) is not None

    def on(self) -> bool:
        """Report again, from the next due time on; return whether that is on disk."""
        return self._try(self._switch, False) is not None

    def log(self) -> str:
        """Return the epsilon spent, the day of the next try, and the last outcome with its day."""
        return self._try(self._log) or "The ledger cannot be used."

    def _try(self, act: Callable[..., T], *arguments: Any) -> T | None:
        """Return what `act` returns; None after an error, which becomes the last outcome."""
        try:
            return act(*arguments)
        except Exception as error:  # noqa: BLE001  statistics never end a program
            with suppress(Exception), self._schedule() as schedule:
                is_new = not schedule.note.endswith(f": {error}")
                if is_new and not (schedule.is_off or _is_silenced()):
                    schedule.note = f"{_day(self._clock())}: {error}"
            return None

    def _report(self, answers: Mapping[Any, str]) -> None:
        if _is_silenced():
            return
        with self._schedule() as schedule:
            if self._clock() < schedule.next_try:
                return
            # Other processes wait as long, and so does this one after a crash.
            schedule.next_try = self._clock() + _DAY
        entry = self._answer(answers)
        if not self._submit(entry):
            round_ = self._rounds().get(entry.question)
            if round_ is None or round_.digest != entry.digest:
                self._ledger.change(entry.key, state="refused", reason="the series has changed")
            else:
                place = {"round_id": round_.id, "round_name": round_.name, "form_id": round_.form}
                self._submit(self._ledger.change(entry.key, **place))
        with self._schedule() as schedule:
            entry = self._ledger.entry(entry.key)
            if entry.state != "pending" and schedule.key == entry.key:
                schedule.key = None
                schedule.note = f"{_day(self._clock())}: {entry.reason or entry.state}"
                self._postpone(schedule)

    def _answer(self, answers: Mapping[Any, str]) -> Entry:
        """Return the unsent answer; draw one first if all are sent."""
        with self._schedule() as before:
            if before.key is not None:
                return self._ledger.entry(before.key)
            self._ledger.check_total(self._epsilon)
        rounds = self._rounds()
        with self._schedule() as schedule:
            if schedule.is_off or schedule.due != before.due:
                raise ClientError("switched off or answered meanwhile")
            if schedule.key is None:
                question = secrets.choice([*self._questions])
                reporter = Reporter(self._url, ledger=self._ledger, max_epsilon=self._epsilon)
                entry, _ = reporter._claim(rounds[question], answers[question])
                schedule.key = entry.key
            return self._ledger.entry(schedule.key)

    def _submit(self, entry: Entry) -> bool:
        """Send an answer and settle it; return False if its round is closed or deleted."""
        try:
            with self._client() as client:
                submit_entry(client, entry)
        except RefusedError as error:
            if error.status in _CLOSED:
                return False
            self._ledger.change(entry.key, state="refused", reason=str(error))
        else:
            self._ledger.change(entry.key, state="accepted")
        return True

    def _rounds(self) -> dict[str | None, Round]:
        """Return the open round of each question. Raises ClientError where none fits."""
        with self._client() as client:
            current = client.series(self._series).current or {}
            references = [*current.values()]
            if "form" in current:
                form = client.form(current["form"])
                references = [each.id for each in form.rounds if each.question in self._questions]
            rounds = {
                each.question or each.title: each for each in map(client.parameters, references)
            }
        for question, items in self._questions.items():
            if (
                (round_ := rounds.get(question)) is None
                or round_.access != "open"
                or round_.epsilon > self._epsilon
                or not label_indices(round_.items, items).keys() >= {*items}
            ):
                raise ClientError(f"nothing open fits the question {question!r}")
        return rounds

    def _switch(self, off: bool) -> bool:
        with self._schedule() as schedule:
            if off and schedule.key is not None:
                change = {"state": "refused", "reason": "switched off", "packed": b""}
                self._ledger.change(schedule.key, **change)
            if off:
                schedule.key, schedule.next_try = None, math.inf
            elif schedule.is_off:
                self._postpone(schedule)
        return True

    def _log(self) -> str:
        with self._schedule() as schedule:
            state = "off" if schedule.is_off or _is_silenced() else _day(schedule.next_try)
            spent = f"{self._ledger.spent:g} of {self._limit:g}"
            return f"Epsilon spent: {spent}. Next try: {state}. Last outcome: {schedule.note}."

    def _postpone(self, schedule: Schedule) -> None:
        """Set the next due time after now; the phase stays."""
        schedule.due += ((self._clock() - schedule.due) // self._every + 1) * self._every
        schedule.next_try = schedule.due

    def _schedule(self) -> AbstractContextManager[Schedule]:
        first = self._clock() + secrets.randbelow(round(self._every))
        series = f"{self._url}/series/{self._series}"
        return self._ledger.schedule(Schedule(series=series, due=first, next_try=first))

    @cached_property
    def _ledger(self) -> Ledger:
        ledger = Ledger(self._path, max_total_epsilon=self._limit)
        ledger._lock_timeout = _TIMEOUT
        return ledger

    def _client(self) -> Client:
        """Return a client that sends each request once, and none after `off`."""
        client = Client(
            self._url,
            timeout=_TIMEOUT,
            deadline=_TIMEOUT,
            retries=Retries(attempts=1),
            transport=self._transport,
        )
        client._http.event_hooks = {"request": [self._check]}
        return client

    def _check(self, *request: object) -> None:
        with self._schedule() as schedule:
            if schedule.is_off or _is_silenced():
                raise ClientError("switched off")

    def _checked(self, answers: Answers) -> Mapping[Any, str]:
        """Return the answers by question. Raises UnknownItemError."""
        if not isinstance(answers, Mapping):
            answers = dict.fromkeys([*self._questions][:1], answers)
        for question in {*answers, *self._questions}:
            value = answers.get(question)
            items = self._questions.get(question, ())
            if not isinstance(value, str) or value not in label_indices(items, [value]):
                # The message has no question: it may be a value.
                raise UnknownItemError("give a label of the form for each of its questions alone")
        return dict(answers)


def _is_silenced() -> bool:
    """Return whether the environment silences this process."""
    values = (os.environ.get(name, "").lower() for name in ("DO_NOT_TRACK", "CI"))
    return any(value not in ("", "0", "false") for value in values)


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
