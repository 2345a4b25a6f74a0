"""`round watch`: follow a round in the terminal while it collects reports."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ldprecover_cli.item_tables import Top, largest, room_beside
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Key, RoundArgument, Url, connected_to
from ldprecover_cli.output import console, counted, joined, percent, plain, plain_table

if TYPE_CHECKING:
    from rich.console import Console, Group

    from ldprecover_client import Client, RoundStatus

_WIDTH = 36  # columns of an interval
_NARROWEST = 8
_WINDOW = 10.0  # seconds over which the rate of reports is measured
_Z = 1.96  # half the width of a 95 % interval, in standard errors
_PAUSE_BETWEEN_ALARMS = 10.0  # seconds; alarms may read every report


def watch(
    round: RoundArgument = CURRENT,
    *,
    top: Top = 10,
    every: Annotated[
        float, Option(min=0.2, max=3600, help="Seconds between updates.", metavar="SECONDS")
    ] = 2.0,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Follow a round while reports come in, until it is closed or Ctrl-C.

    To a file or pipe it writes one line for each change.

    Example: ldprecover round watch cities --top 20
    """
    out = console()
    with connected_to(round, url, key) as (client, target):
        follower = _Follower(client, client.parameters(target.reference).id)
        show = _show_live if out.is_terminal else _write_lines
        with suppress(KeyboardInterrupt):  # the usual way to stop
            show(out, follower, target.title, top, every)


@dataclass
class _Snapshot:
    """A round at one moment."""

    round: "RoundStatus"
    frequencies: Mapping[str, Any] | None = None
    alarms: Sequence[Mapping[str, Any]] | None = None
    leader: str | None = None
    rate: float = 0.0
    error: str = ""

    @property
    def raised(self) -> list[str]:
        """Names of the raised alarms."""
        return [alarm["name"] for alarm in self.alarms or () if alarm["raised"]]

    @property
    def change(self) -> tuple[object, ...]:
        """Values whose change starts a new line."""
        return self.round.state, self.round.n, tuple(self.raised), self.error


@dataclass
class _Follower:
    """Polls a round and requests only what has changed."""

    client: "Client"
    id: str
    _last: _Snapshot | None = None
    _alarmed: float = -_PAUSE_BETWEEN_ALARMS
    _alarmed_at: int = 0
    _counts: deque[tuple[float, int]] = field(default_factory=deque)

    def snapshots(self, every: float) -> Iterator[_Snapshot]:
        """Yield a snapshot every `every` seconds, until the round is closed."""
        while True:
            snapshot = self._snapshot()
            yield snapshot
            if snapshot.round.state == "closed" and not snapshot.error:
                return
            time.sleep(every)

    def _snapshot(self) -> _Snapshot:
        from ldprecover_client.errors import RefusedError, UnansweredError
        from ldprecover_client.leader import leader_sentence

        try:
            round = self.client.round(self.id)
            snapshot = _Snapshot(round, rate=self._rate(round.n))
            last = self._last
            if last is not None and last.round.n == round.n:
                snapshot.frequencies, snapshot.alarms = last.frequencies, last.alarms
                snapshot.leader = last.leader
            elif round.n:
                snapshot.frequencies = self.client.frequencies(self.id).body
                snapshot.alarms = None if last is None else last.alarms
                snapshot.leader = None if last is None else last.leader
            if round.n and self._alarms_due(snapshot):
                snapshot.alarms = self._alarms()
                snapshot.leader = leader_sentence(self.client, self.id)
        except (UnansweredError, RefusedError) as error:
            if self._last is None or (
                isinstance(error, RefusedError) and error.slug == "round-not-found"
            ):
                raise
            return replace(self._last, rate=0.0, error=str(error))
        self._last = snapshot
        return snapshot

    def _rate(self, n: int) -> float:
        now = time.monotonic()
        self._counts.append((now, n))
        while len(self._counts) > 2 and now - self._counts[0][0] > _WINDOW:
            self._counts.popleft()
        start, before = self._counts[0]
        return max(0.0, (n - before) / (now - start)) if now > start else 0.0

    def _alarms_due(self, snapshot: _Snapshot) -> bool:
        """Return whether untested reports exist and the pause is over, or the round just closed."""
        last = self._last
        is_over = snapshot.round.state == "closed" and (
            last is None or last.round.state != "closed"
        )
        stale = snapshot.round.n != self._alarmed_at
        return stale and (is_over or time.monotonic() - self._alarmed >= _PAUSE_BETWEEN_ALARMS)

    def _alarms(self) -> Sequence[Mapping[str, Any]] | None:
        """Return the alarms; None if the server rejects the request."""
        from ldprecover_client.errors import RefusedError

        self._alarmed = time.monotonic()
        try:
            result = self.client.alarms(self.id)
        except RefusedError:
            return None
        self._alarmed_at = result["n"]
        alarms: Sequence[Mapping[str, Any]] = result["alarms"]
        return alarms


def _show_live(out: "Console", follower: _Follower, title: str, top: int, every: float) -> None:
    from rich.live import Live

    with Live(console=out, auto_refresh=False, vertical_overflow="crop") as live:
        for snapshot in follower.snapshots(every):
            live.update(_picture(out, snapshot, title, top), refresh=True)


def _write_lines(out: "Console", follower: _Follower, title: str, top: int, every: float) -> None:
    before: tuple[object, ...] | None = None
    for snapshot in follower.snapshots(every):
        if snapshot.change != before:
            out.print(f"{title}: {_line(snapshot, top)}", soft_wrap=True)
            out.file.flush()
        before = snapshot.change


def _line(snapshot: _Snapshot, top: int) -> str:
    status, rate = snapshot.round, f"{snapshot.rate:.3g} a second"
    parts = [f"{status.state}, {counted(status.n, 'report')}, {rate}"]
    if snapshot.alarms is not None:
        parts.append(f"raised alarms: {', '.join(snapshot.raised) or 'none'}")
    if snapshot.frequencies is not None:
        result = snapshot.frequencies
        parts.append(f"sum {percent(result['sum'])}")
        shares, errors = result["frequencies"], result["standard_errors"]
        shown = (
            f"{result['items'][i]} {100 * shares[i]:.2f} % ± {100 * _Z * errors[i]:.2f}"
            for i in largest(shares, top)
        )
        parts.append(joined(shown))
        if snapshot.leader:
            parts.append(plain(snapshot.leader))
        parts += map(plain, result.get("notes") or ())
    if snapshot.error:
        parts.append(plain(snapshot.error))
    return "; ".join(parts)


def _picture(out: "Console", snapshot: _Snapshot, title: str, top: int) -> "Group":
    from rich.console import Group
    from rich.text import Text

    status, parameters = snapshot.round, snapshot.round.parameters
    head = f"{title}: {plain(parameters.protocol)}, epsilon {parameters.epsilon:g}, {status.state}"
    lines: list[Any] = [
        Text(head, style="bold"),
        Text(f"{counted(status.n, 'report')}, {snapshot.rate:.3g} a second"),
        *_alarm_lines(snapshot),
    ]
    if snapshot.frequencies is None:
        lines.append(Text("No estimates yet: the round has no reports."))
    else:
        lines += [_items(out, snapshot.frequencies, top)]
        lines.append(
            Text(
                f"Sum of all estimates: {percent(snapshot.frequencies['sum'])}; honest reports "
                "give about 100 %."
            )
        )
        if snapshot.leader:
            lines.append(Text(plain(snapshot.leader)))
        notes = snapshot.frequencies.get("notes") or ()
        lines += [Text(plain(f"Note: {note}")) for note in notes]
    if snapshot.error:
        lines.append(Text(plain(f"{snapshot.error}; trying again"), style="red"))
    elif status.state == "open":
        lines.append(Text("Ctrl-C stops watching.", style="dim"))
    return Group(*lines)


def _alarm_lines(snapshot: _Snapshot) -> Iterator[Any]:
    from rich.text import Text

    if snapshot.alarms is None:
        return
    if not snapshot.raised:
        yield Text(f"All {counted(len(snapshot.alarms), 'alarm')} are silent; that proves nothing.")
    for alarm in snapshot.alarms:
        if alarm["raised"]:
            yield Text(plain(f"RAISED {alarm['name']}: {alarm['meaning']}"), style="bold red")


def _items(out: "Console", result: Mapping[str, Any], top: int) -> Any:
    frequencies, errors = result["frequencies"], result["standard_errors"]
    chosen = largest(frequencies, top)
    intervals = [
        (frequencies[i] - _Z * errors[i], frequencies[i], frequencies[i] + _Z * errors[i])
        for i in chosen
    ]
    low, high = min(0.0, *(low for low, _, _ in intervals)), max(high for _, _, high in intervals)
    labels = [result["items"][i] for i in chosen]
    width = room_beside(labels, 20, out.width, narrowest=_NARROWEST, widest=_WIDTH)
    rows = (
        (
            label,
            *(
                [whisker(interval, (low, high), width, ascii_only=out.options.ascii_only)]
                if width
                else []
            ),
            f"{100 * interval[1]:.2f}",
            f"{100 * (interval[2] - interval[1]):.2f}",
        )
        for label, interval in zip(labels, intervals, strict=True)
    )
    heads = ("item", *([""] if width else []), "percent", "± 95 %")
    return plain_table(*heads, rows=rows, numbers=2)


def whisker(
    ends: tuple[float, float, float],
    axis: tuple[float, float],
    width: int,
    *,
    ascii_only: bool = False,
) -> str:
    """Return an interval (low, middle, high) drawn in `width` columns on an axis (low, high)."""
    first, last = axis
    columns = [
        round((end - first) / (last - first) * (width - 1)) if last > first else 0 for end in ends
    ]
    low, middle, high = (min(width - 1, max(0, column)) for column in columns)
    start, line, end, dot = "|-|o" if ascii_only else "├─┤●"
    cells = [" "] * width
    cells[low : high + 1] = line * (high + 1 - low)
    cells[low], cells[high] = start, end
    cells[middle] = dot
    return "".join(cells)
