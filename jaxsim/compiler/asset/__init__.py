"""Assets: meshes, convex hulls, textures, height fields, skins, octrees and bounding volume hierarchies."""
