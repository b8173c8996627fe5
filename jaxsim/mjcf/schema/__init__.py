"""The MJCF language as one table, its objects, the rules beyond the table, and its reference page."""
