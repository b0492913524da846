"""The studio: a local page for one's own studies, and the same page as one file to send.

==================  ==========================================================================
file                idea
==================  ==========================================================================
``server.py``       the server on this computer: routes, the token, edits
``desk.py``         studies that are open, and what was computed of them, until they change
``sections.py``     what the page shows of a study, as plain values for the templates
``svg.py``          pictures as SVG that follows the colours of the page
``new_study.py``    questions an engineer can answer, and the problem that the answers state
``one_file.py``     the page as one self-contained file
==================  ==========================================================================

The page is made of the templates in ``templates/``; htmx replaces a section at a time, so that
there is next to no JavaScript. Every edit goes through :class:`~kernelbounds.Study`, as those of
the command line do.
"""
