"""Elements of the model: bodies, geoms, joints, sites, tendons, actuators, sensors, equalities, keyframes, plugins."""
