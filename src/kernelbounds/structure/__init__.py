"""The structure of f*: what users state of it beside one kernel and one norm bound.

==============  =============================================================================
file            idea
==============  =============================================================================
``offset.py``   f* as a level and a function around it
``parts.py``    f* as a sum of parts, with a kernel and a norm bound for each
``classes.py``  f* in any of several classes of functions, or in all of them
==============  =============================================================================
"""
