"""Gossip: how nodes come to hold the same files without a centre (DESIGN section 5; PROTOCOL.md, section 16).

`reconcile` finds what two nodes lack of each other's items; `exchange` is one exchange from the side that began it, and
`answering` from the other. All of these are pure: a node's store comes in as a port, and messages go in and out as
bytes. Nothing here knows a database or a web framework.
"""
