"""The paper's experiments, end to end: specifications, runs, tables, figures and a report."""
