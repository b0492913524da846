"""Studies on disk: experiments that are asked for and told, in one file, for people at a bench.

===================  =========================================================================
file                 idea
===================  =========================================================================
``study.py``         the object
``store.py``         the file: its tables
``database.py``      SQLite: transactions, versions, errors
``points.py``        settings of the inputs, as they are given and as they can be set
``outcomes.py``      outcomes as they are given
``tables.py``        tables of old runs, which may have been imported before
``deciding.py``      what to try next, and the certificate
``promising.py``     the settings with the best estimate
``status.py``        how the study stands, and what to do
``replay.py``        what was known in the past
``pictures.py``      history, certificates over time, slices
``records.py``       what is handed to users
===================  =========================================================================
"""

from kernelbounds.study.records import Promising, Trial
from kernelbounds.study.status import Checked, Status
from kernelbounds.study.store import Told
from kernelbounds.study.study import Study

__all__ = ["Checked", "Promising", "Status", "Study", "Told", "Trial"]
