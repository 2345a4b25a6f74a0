"""An attack on a round or a form of a running server, by the interface of genuine users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldprecover import ParameterError
from ldprecover._checks import check_whole
from ldprecover.estimation.simplex import project_simplex
from ldprecover.rounds.tickets import assigned_round
from ldprecover_attacker.base import Attack
from ldprecover_client.answers import Form, Round, RoundStatus
from ldprecover_client.bulk import BATCH_SIZE, check_tickets, client_of, simulate_users
from ldprecover_client.errors import RefusedError
from ldprecover_client.http import Client
from ldprecover_client.progress import Progress

_STREAM = 2
"""Stream of the seed; simulated populations of the same seed use the streams 0 and 1."""


def campaign_rng(seed: int) -> np.random.Generator:
    """Return the generator of the reports of a campaign with this seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))


def round_knowledge(client: Client, round: RoundStatus, m: int) -> dict[str, Any]:
    """Return the options of an attack that m malicious users know of a round with reports.

    They are their share of the reports, and the frequencies so far as a distribution, unless the
    client may not read these: then the attack guesses.
    """
    knowledge: dict[str, Any] = {"share": m / (round.n + m)}
    try:
        estimates = client.frequencies(round.id).frequencies
    except RefusedError:
        return knowledge
    assert estimates is not None  # the round has reports
    return knowledge | {"frequencies": project_simplex(estimates).tolist()}


@dataclass(frozen=True, kw_only=True)
class CampaignResult:
    """The attack of a campaign, as resolved in the round, and the numbers of its reports.

    `accepted` and `duplicates` are those of `ldprecover_client.BulkReceipt`.
    """

    round_id: str
    attack: Attack
    m: int
    seed: int
    accepted: int
    duplicates: int


@dataclass(frozen=True, kw_only=True)
class _Delivery:
    """How the reports of a campaign get to the server: see `Campaign`."""

    key: str | None = field(default=None, repr=False)
    tickets: Sequence[str] | None = field(default=None, repr=False)
    batch_size: int = BATCH_SIZE
    connections: int = 4
    secret: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Campaign(_Delivery):
    """m malicious users who send one attack's reports to a round.

    `server` is a URL, or a `Client`, which stays open. `round` is an id, a name, "current", or a
    round that was fetched before; the attack's targets may be labels of the round. The
    same seed and attack send the same reports to rounds of the same parameters. The remaining
    fields are those of `ldprecover_client.submit_reports`: with a report key in place of many
    submissions, or with `batch_size` 1 one report a request, as anyone may send them to an open
    round.

    `tickets` are those the attacker holds, one for each malicious user: each sends its one report.

    Raises ParameterError for a negative m or seed, and for tickets that are not m different ones.

        Campaign(url, "cities", MGA(["Reno, NV"]), m=100, seed=1, key=key).run()
    """

    server: str | Client
    round: str | Round
    attack: Attack
    m: int
    seed: int

    def __post_init__(self) -> None:
        for name in ("m", "seed"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name), 0))
        if self.tickets is not None:
            check_tickets(self.tickets, self.m)

    def run(self, progress: Progress | Literal["bar"] | None = None) -> CampaignResult:
        """Fetch the round's parameters, make the m reports, post them.

        `progress` is called with reports accepted and m; "bar" shows a bar on a terminal's standard
        error. Raises ParameterError when the attack does not fit the round, and what
        `submit_reports` raises.
        """

        def make_reports(round: Round) -> NDArray[Any]:
            attack = self.attack.resolve(round.parameters.items)
            return attack.reports(round.parameters.oracle, self.m, campaign_rng(self.seed))

        round_, receipt = simulate_users(
            self.server,
            self.round,
            make_reports,
            key=self.key,
            tickets=self.tickets and self.tickets[: self.m],
            batch_size=self.batch_size,
            connections=self.connections,
            progress=progress,
            secret=self.secret,
            doing=("malicious users report", "malicious users craft their reports"),
        )
        attack = self.attack.resolve(round_.parameters.items)
        return CampaignResult(
            round_id=round_.id,
            attack=attack,
            m=self.m,
            seed=self.seed,
            **vars(receipt),
        )


@dataclass(frozen=True)
class FormCampaign(_Delivery):
    """m malicious users who send their reports to a form, each to one round.

    `form` is an id, a name, or a form that was fetched before. `attacks` has the attack on each
    question. Without tickets the users share these questions evenly, so that one question is
    concentrating and all are spreading. With tickets, one for each user, the ticket decides; users
    whose question has no attack send nothing. The remaining arguments are those of `Campaign`.

        FormCampaign(url, "usage", {"Which editor?": MGA(["vim"])}, m=9, seed=1, key=key).run()
    """

    server: str | Client
    form: str | Form
    attacks: Mapping[str, Attack]
    m: int
    seed: int

    def run(self, progress: Progress | Literal["bar"] | None = None) -> tuple[CampaignResult, ...]:
        """Run a `Campaign` on each question of `attacks`; return their results in this order.

        Raises ParameterError for a negative m, wrong tickets or a question that the form does not
        have, before anything is sent, and what `Campaign.run` raises.
        """
        m, results = check_whole("m", self.m, 0), []
        if self.tickets is not None:
            check_tickets(self.tickets, m)
        with client_of(self.server, self.key) as client:
            form = client.form(self.form) if isinstance(self.form, str) else self.form
            questions = [round.question for round in form.rounds]
            if not self.attacks.keys() <= {*questions}:
                raise ParameterError("attacks: the form does not have each of these questions")
            for i, (question, attack) in enumerate(self.attacks.items()):
                tickets = None
                if self.tickets is not None:
                    tickets = [
                        ticket
                        for ticket in self.tickets[:m]
                        if questions[assigned_round(ticket, len(questions))] == question
                    ]
                campaign = Campaign(
                    client,
                    form.rounds[questions.index(question)].id,
                    attack,
                    len(range(i, m, len(self.attacks)) if tickets is None else tickets),
                    self.seed,
                    tickets=tickets,
                    batch_size=self.batch_size,
                    connections=self.connections,
                    secret=self.secret,
                )
                results.append(campaign.run(progress))
        return tuple(results)
