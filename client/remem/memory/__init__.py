"""One memory on one machine: its folder, its database, and what the tables hold."""
