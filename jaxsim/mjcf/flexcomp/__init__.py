"""Parts of the macro flexcomp: grids, GMSH files, cells of lattices, pins, and how expanded flexcomps are saved."""
