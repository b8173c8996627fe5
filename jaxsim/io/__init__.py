"""Models from files, strings, Specs, archives and MuJoCo objects, and back."""
