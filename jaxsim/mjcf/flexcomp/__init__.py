"""What the macro flexcomp needs: grids, GMSH files, lattices of nodes, pins, and how it is saved."""
