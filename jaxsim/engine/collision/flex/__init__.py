"""Contacts of flexes: with geoms, with other flexes and with themselves."""
