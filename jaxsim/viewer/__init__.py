"""Viewers: HTML pages, a local web server, and images by ray casting."""
