"""The adversary: the same rounds for a seed, and the worst of them for each goal."""

from ldprecover_experiments.studies.adversary import GOALS, adversary, play


def test_table_has_the_worst_round_for_each_goal() -> None:
    steps: list[tuple[int, int]] = []
    table = adversary(2, 2, lambda done, total: steps.append((done, total)))
    assert steps == [(1, 2), (2, 2)]
    rounds = [play(2, i) for i in (0, 1)]
    for goal, (title, limit) in enumerate(GOALS.items()):
        values, title_of_round = max(rounds, key=lambda each: each[0][goal])
        number = sum(each[goal] > limit for each, _ in rounds)
        assert table.rows[goal] == [title, title_of_round, str(number), f"{values[goal]:.2f}"]
