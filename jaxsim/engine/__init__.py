"""The engine: pure functions (Model, Data) -> Data, one module for each stage; `forward.py` shows the whole step."""
