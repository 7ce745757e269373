"""The database: how it is opened, its tables, and the count of its changes."""
