"""Contacts of signed distance fields: plugins' fields, and octrees of meshes."""
