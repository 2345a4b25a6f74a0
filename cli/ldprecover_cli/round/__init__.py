"""`round`: rounds on a server, from opening to deletion."""

from ldprecover_cli.grammar import group
from ldprecover_cli.round import export, next, open, state

app = group(
    "round",
    """Run a survey (a round): open, list and close it, export its counts.

    A round asks one question, with answers and a privacy that never change. The server does all
    work; `ldprecover serve` starts one.

    Example: ldprecover round open cities --dataset cities --epsilon 0.5
    """,
    open=open.open_round,
    next=next.open_next,
    list=state.list_rounds,
    show=state.show_round,
    close=state.close_round,
    delete=state.delete_round,
    export=export.export,
)
