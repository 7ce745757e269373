"""Remem: a memory of lessons, and the commons in which memories share them.

`remem.protocol` is the documented public library; everything else serves the command `remem`.
"""

__version__ = "0.1.0"
