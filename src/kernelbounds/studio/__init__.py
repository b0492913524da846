"""The studio: a local page for one's own studies, and the same page as one file to send.

==================  ==========================================================================
file                idea
==================  ==========================================================================
``server.py``       the server on this computer: routes, the token, edits
``desk.py``         the studies that are open, and results about them until they change
``sections.py``     the sections of the page of a study, and the page as one self-contained file
``forms.py``        edits of a study, and the questions that state a new one
``svg.py``          pictures as SVG that follows the colours of the page
==================  ==========================================================================

The page is made of the templates in ``templates/``; htmx replaces a section at a time, so that
there is next to no JavaScript. Every edit goes through :class:`~kernelbounds.Study`, as those of
the command line do.
"""
