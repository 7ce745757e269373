"""The routes: from HTTP to calls and back. No SQL here, and no decision about a file or a lesson."""
