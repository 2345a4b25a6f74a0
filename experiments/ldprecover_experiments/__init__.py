"""The paper's evaluation, rerun: every table and figure as a table of cells, their results and their pictures."""
