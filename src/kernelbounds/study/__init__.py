"""Studies on disk: experiments that are asked for and told, in one file, for people at a bench.

===================  =========================================================================
file                 idea
===================  =========================================================================
``study.py``         the object
``study_file.py``    the file: its tables
``database.py``      SQLite: transactions, versions, errors
``records.py``       what users hand in, outcomes and tables, and what they are handed
``deciding.py``      what to try next, certificates, and the most promising settings
``status.py``        how the study stands, and what to do
``revision.py``      other assumptions for the same observations, and what is guaranteed then
``pictures.py``      its history, its certificates over time, and slices
===================  =========================================================================
"""

from kernelbounds.problem.checked import Checked
from kernelbounds.study.records import Promising, Trial
from kernelbounds.study.revision import Revision
from kernelbounds.study.status import Status
from kernelbounds.study.study import Study
from kernelbounds.study.study_file import Note, Told

__all__ = ["Checked", "Note", "Promising", "Revision", "Status", "Study", "Told", "Trial"]
