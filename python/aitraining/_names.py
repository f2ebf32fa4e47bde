"""Names that no parameter has are refused, with the nearest one."""
from dataclasses import fields
from difflib import get_close_matches


class KnownNames:
    """Base of the dataclasses of parameters. `other_names`: what other tools call them."""

    def __init_subclass__(cls, other_names, **rest):
        super().__init_subclass__(**rest)
        cls._other_names = other_names

    def __new__(cls, *_, **values):
        unknown = [cls._unknown(name) for name in values if name not in cls.__dataclass_fields__]
        if unknown:
            raise TypeError("; ".join(unknown))
        return super().__new__(cls)

    def __setattr__(self, name, value):
        if name not in self.__dataclass_fields__:
            raise AttributeError(self._unknown(name))
        super().__setattr__(name, value)

    @classmethod
    def _unknown(cls, name):
        near = get_close_matches(name.lower(), [*cls.__dataclass_fields__, *cls._other_names], n=1)
        meant = cls._other_names.get(near[0], near[0]) if near else None
        return f"unknown parameter {name!r}" + (f": did you mean {meant!r}?" if meant else "")

    def changed(self):
        """The values that differ from the defaults, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {field.name: values[field.name] for field in fields(self) if values[field.name] != field.default}
