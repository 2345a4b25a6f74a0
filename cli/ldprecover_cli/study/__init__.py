"""`study`: the paper's experiments, evaluations and studies of one's own."""

from ldprecover_cli.grammar import group
from ldprecover_cli.study import adversarial, certificates, paper, run, unmix

app = group(
    "study",
    """Rerun the paper's experiments, or run a study of your own.

    Each writes its results into a folder, and does not run again what the folder has.

    Example: ldprecover study paper table1
    """,
    run=run.run,
    paper=paper.paper,
    unmix=unmix.unmix,
    adversarial=adversarial.adversarial,
    certificates=certificates.certificates,
)
