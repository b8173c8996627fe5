"""The engine: pure functions (Model, Data) -> Data, in layers that are folders; `step/forward.py` shows a step."""
