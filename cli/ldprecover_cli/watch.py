"""`watch`: a round as it fills, in the terminal."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli.options import DEFAULT_URL, Key, RoundArgument, Url, connected
from ldprecover_cli.output import console, counted, joined, plain, plain_table

if TYPE_CHECKING:
    from rich.console import Console, Group

    from ldprecover_client import Client, RoundStatus

_WIDTH = 36
_WINDOW = 10.0  # seconds over which reports a second are counted
_Z = 1.96  # half a 95 % interval in standard errors
_PAUSE_BETWEEN_ALARMS = 10.0  # seconds: they may read every report


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(watch)


def watch(
    round: RoundArgument = "current",
    *,
    top: Annotated[
        int, typer.Option("--top", min=1, help="Show this many items, the most frequent first.")
    ] = 10,
    every: Annotated[
        float, typer.Option(min=0.2, max=3600, help="Seconds between two looks.", metavar="SECONDS")
    ] = 2.0,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Follow a round until it is closed, or until Ctrl-C: reports, alarms, the most frequent items.

    In a file or a pipe it writes a line for each change.

    Example: ldprecover watch cities --top 20
    """
    out = console()
    with connected(url, key, scope="analyst", round=round) as client:
        follower = _Follower(
            client, client.parameters(round).id
        )  # another may be the current one later
        try:
            if out.is_terminal:
                _show_live(out, follower, top, every)
            else:
                _write_lines(out, follower, top, every)
        except KeyboardInterrupt:
            return  # it is how one stops watching


@dataclass
class _Look:
    """What is known of a round at one time."""

    round: "RoundStatus"
    frequencies: Mapping[str, Any] | None = None
    alarms: Sequence[Mapping[str, Any]] | None = None
    rate: float = 0.0
    said: str = ""

    @property
    def raised(self) -> list[str]:
        """The names of the alarms that are raised."""
        return [alarm["name"] for alarm in self.alarms or () if alarm["raised"]]

    @property
    def change(self) -> tuple[object, ...]:
        """What makes a line of its own where it differs."""
        return self.round.state, self.round.n, tuple(self.raised), self.said


@dataclass
class _Follower:
    """Looks at a round again and again, and asks for what has changed alone."""

    client: "Client"
    id: str
    _last: _Look | None = None
    _alarmed: float = -_PAUSE_BETWEEN_ALARMS
    _alarmed_at: int = 0
    _counts: deque[tuple[float, int]] = field(default_factory=deque)

    def looks(self, every: float) -> Iterator[_Look]:
        """Yield a look every so many seconds; the last is one at a closed round."""
        while True:
            look = self._look()
            yield look
            if look.round.state == "closed" and not look.said:
                return
            time.sleep(every)

    def _look(self) -> _Look:
        from ldprecover_client.errors import RefusedError, UnansweredError

        try:
            round = self.client.round(self.id)
            look = _Look(round, rate=self._rate(round.n))
            last = self._last
            if last is not None and last.round.n == round.n:
                look.frequencies, look.alarms = last.frequencies, last.alarms
            elif round.n:
                look.frequencies = self.client.frequencies(self.id)
                look.alarms = None if last is None else last.alarms
            if round.n and self._is_time_for_alarms(look):
                look.alarms = self._alarms()
        except (UnansweredError, RefusedError) as error:
            if self._last is None or (
                isinstance(error, RefusedError) and error.slug == "round-not-found"
            ):
                raise
            return replace(self._last, rate=0.0, said=str(error))
        self._last = look
        return look

    def _rate(self, n: int) -> float:
        now = time.monotonic()
        self._counts.append((now, n))
        while len(self._counts) > 2 and now - self._counts[0][0] > _WINDOW:
            self._counts.popleft()
        began, before = self._counts[0]
        return max(0.0, (n - before) / (now - began)) if now > began else 0.0

    def _is_time_for_alarms(self, look: _Look) -> bool:
        """Tell whether there are reports that were not tested and a while has passed, or the round
        is just closed.
        """
        last = self._last
        is_over = look.round.state == "closed" and (last is None or last.round.state != "closed")
        stale = look.round.n != self._alarmed_at
        return stale and (is_over or time.monotonic() - self._alarmed >= _PAUSE_BETWEEN_ALARMS)

    def _alarms(self) -> Sequence[Mapping[str, Any]] | None:
        """Return the alarms; None where they cannot be had, which is no reason to look away."""
        from ldprecover_client.errors import RefusedError

        self._alarmed = time.monotonic()
        try:
            answer = self.client.alarms(self.id)
        except RefusedError:
            return None
        self._alarmed_at = answer["n"]
        alarms: Sequence[Mapping[str, Any]] = answer["alarms"]
        return alarms


def _show_live(out: "Console", follower: _Follower, top: int, every: float) -> None:
    from rich.live import Live

    with Live(console=out, auto_refresh=False, vertical_overflow="crop") as live:
        for look in follower.looks(every):
            live.update(_picture(out, look, top), refresh=True)


def _write_lines(out: "Console", follower: _Follower, top: int, every: float) -> None:
    before: tuple[object, ...] | None = None
    for look in follower.looks(every):
        if look.change != before:
            out.print(_line(look, top), soft_wrap=True)
            out.file.flush()
        before = look.change


def _line(look: _Look, top: int) -> str:
    parts = [f"{look.round.state}, {counted(look.round.n, 'report')}, {look.rate:.3g} a second"]
    if look.alarms is not None:
        parts.append(f"alarms: {', '.join(look.raised) or 'none'}")
    if look.frequencies is not None:
        answer = look.frequencies
        parts.append(f"sum {answer['sum']:.3f}")
        shares, errors = answer["frequencies"], answer["standard_errors"]
        shown = (
            f"{answer['items'][i]} {100 * shares[i]:.2f} % ± {100 * _Z * errors[i]:.2f}"
            for i in _largest(shares, top)
        )
        parts.append(joined(shown))
    if look.said:
        parts.append(plain(look.said))
    return "; ".join(parts)


def _picture(out: "Console", look: _Look, top: int) -> "Group":
    from rich.console import Group
    from rich.text import Text

    status, parameters = look.round, look.round.parameters
    head = (
        f"{plain(status.name)}: {plain(parameters.protocol)}, epsilon {parameters.epsilon:g}, "
        f"{status.state}"
    )
    lines: list[Any] = [
        Text(head, style="bold"),
        Text(f"{counted(status.n, 'report')}, {look.rate:.3g} a second"),
        *_said_of_alarms(look),
    ]
    if look.frequencies is None:
        lines.append(Text("No estimates yet: they need reports."))
    else:
        lines += [_items(out, look.frequencies, top)]
        lines.append(
            Text(
                f"Sum of all estimates: {look.frequencies['sum']:.3f}; 1 is expected of honest "
                "reports."
            )
        )
    if look.said:
        lines.append(Text(plain(f"{look.said}; trying again"), style="red"))
    elif status.state == "open":
        lines.append(Text("Ctrl-C stops watching.", style="dim"))
    return Group(*lines)


def _said_of_alarms(look: _Look) -> Iterator[Any]:
    from rich.text import Text

    if look.alarms is None:
        return
    if not look.raised:
        yield Text(f"{counted(len(look.alarms), 'alarm')} silent, which proves nothing.")
    for alarm in look.alarms:
        if alarm["raised"]:
            yield Text(plain(f"ALARM {alarm['name']}: {alarm['meaning']}"), style="bold red")


def _items(out: "Console", answer: Mapping[str, Any], top: int) -> Any:
    frequencies, errors = answer["frequencies"], answer["standard_errors"]
    chosen = _largest(frequencies, top)
    low = min(0.0, *(frequencies[i] - _Z * errors[i] for i in chosen))
    high = max(frequencies[i] + _Z * errors[i] for i in chosen)
    labels = [answer["items"][i] for i in chosen]
    width = max(8, min(_WIDTH, out.width - max(map(len, labels)) - 2 - 20))
    table = plain_table("item", "", "percent", "± 95 %", numbers=2)
    for i, label in zip(chosen, labels, strict=True):
        ends = (frequencies[i] - _Z * errors[i], frequencies[i], frequencies[i] + _Z * errors[i])
        drawn = whisker(ends, (low, high), width, ascii_only=out.options.ascii_only)
        table.add_row(
            plain(label), drawn, f"{100 * frequencies[i]:.2f}", f"{100 * _Z * errors[i]:.2f}"
        )
    return table


def whisker(
    ends: tuple[float, float, float],
    axis: tuple[float, float],
    width: int,
    *,
    ascii_only: bool = False,
) -> str:
    """Return a line of `width` columns with an interval's low end, middle and high end on an axis
    from low to high.
    """
    first, last = axis
    columns = [
        round((end - first) / (last - first) * (width - 1)) if last > first else 0 for end in ends
    ]
    low, middle, high = (min(width - 1, max(0, column)) for column in columns)
    left, line, right, dot = "|-|o" if ascii_only else "├─┤●"
    drawn = [" "] * width
    drawn[low : high + 1] = line * (high + 1 - low)
    drawn[low], drawn[high] = left, right
    drawn[middle] = dot
    return "".join(drawn)


def _largest(values: Sequence[float], top: int) -> list[int]:
    return sorted(range(len(values)), key=lambda i: -values[i])[:top]
