"""The paper's experiments and further ones: their jobs, tables, figures and a report."""
