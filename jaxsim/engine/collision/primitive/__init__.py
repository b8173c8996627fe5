"""Contacts of planes, spheres, capsules and boxes in closed form."""
