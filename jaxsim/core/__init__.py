"""Model, Data and their fields, enumerations, the layout of constraint rows, callbacks, plugins, errors."""
