"""Empty bases of Model, Data and their structs, to which a stub of the same name gives their fields.

Editors and type checkers read the stub, which `python -m validation.fields` writes from the tables of fields.
"""


class ModelFields:
    __slots__ = ()


class OptionFields:
    __slots__ = ()


class DataFields:
    __slots__ = ()


class ContactFields:
    __slots__ = ()


class ConstraintFields:
    __slots__ = ()


class WarningFields:
    __slots__ = ()
