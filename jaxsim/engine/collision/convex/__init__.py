"""Contacts of convex geoms by GJK, EPA and MPR, with derivatives from the features that these find."""
