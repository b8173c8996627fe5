"""The engine: pure functions (Model, Data) -> Data, one module a stage; `forward.py` is the step on one screen."""
