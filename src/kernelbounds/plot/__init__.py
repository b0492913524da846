"""Pictures of bounds, certificates and runs, on matplotlib axes; one file for each kind.

Every function draws on the axes that it is given, or else on those of a new figure, and returns
them. Nothing is shown or saved: that is ``pyplot.show()`` or ``ax.figure.savefig(...)``. matplotlib
is imported when a picture is drawn, and not before.

=====================  ===============================================================
file                   pictures
=====================  ===============================================================
``one_input.py``       :func:`band`; several bands in one, :func:`compare`; and example
                       :func:`functions`
``several_inputs.py``  :func:`maps` of estimates, lower bounds, upper bounds and widths,
                       and :func:`slices`, a band along each input
``rounds.py``          :func:`regret`, :func:`certificate` and :func:`noise`, round by round
``contents.py``        what is drawn: bounds, data, the truth, :func:`gaussian_process`
``canvas.py``          figures, colours, legends; the box: names, logarithmic axes, distances
=====================  ===============================================================
"""

from kernelbounds.plot.contents import GaussianProcess, gaussian_process
from kernelbounds.plot.one_input import band, compare, functions
from kernelbounds.plot.rounds import certificate, noise, regret
from kernelbounds.plot.several_inputs import maps, slices

__all__ = [
    "GaussianProcess",
    "band",
    "certificate",
    "compare",
    "functions",
    "gaussian_process",
    "maps",
    "noise",
    "regret",
    "slices",
]
