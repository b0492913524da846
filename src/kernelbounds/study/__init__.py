"""Studies: series of experiments in one file each, for people at a bench.

==================  ==========================================================================
file                idea
==================  ==========================================================================
``study.py``        :class:`Study`, the object
``asking.py``       ``ask``: the choice of the next trials, for one of three purposes
``telling.py``      ``tell``, ``correct`` and ``import_runs``: outcomes, tables of old runs, notes
``search.py``       the search for the best settings, and a certificate of how good they are
``findings.py``     the confidence sequence of the outcomes, and certificates over time
``status.py``       ``status``: how the study stands, and whether to go on
``remedies.py``     what to do when the data refute the assumptions
``revision.py``     the terms of a study, and ``revise``: other terms for the same observations
``pictures.py``     ``plot``: the history, the certificates over time, and slices
``trial.py``        trials, their outcomes and notes: as rows of the file, and as users get them
``study_file.py``   the tables of the file, what is read from them and written to them
``database.py``     SQLite: transactions, checksums, errors
==================  ==========================================================================
"""

from kernelbounds.problem.checked import Checked
from kernelbounds.study.revision import Revision
from kernelbounds.study.search import Promising
from kernelbounds.study.status import Status
from kernelbounds.study.study import Study
from kernelbounds.study.trial import Note, Told, Trial

__all__ = ["Checked", "Note", "Promising", "Revision", "Status", "Study", "Told", "Trial"]
