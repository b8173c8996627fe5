"""The MJCF language: the table of elements and attributes, its objects, rules beyond the table, the page of docs."""
