"""A decimal column that loses nothing on any database."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models


def plain(value: Decimal) -> str:
    """Decimal notation without an exponent and without trailing zeros: 1, 0.001, -20."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


# Sums and products of 40 digits each stay exact, in this thread and in every later one.
decimal.DefaultContext.prec = decimal.getcontext().prec = 90

# Only the type checker reads these: its plugin widens them where null=True.
_Set_contra = TypeVar("_Set_contra", contravariant=True)
_Get_co = TypeVar("_Get_co", covariant=True)

if TYPE_CHECKING:

    class _Base(models.Field[_Set_contra, _Get_co]):
        _pyi_private_set_type: Decimal | str | int
        _pyi_private_get_type: Decimal

else:

    class _Base(models.Field):
        def __class_getitem__(cls, _: object) -> type:
            return cls


class ExactDecimalField(_Base[_Set_contra, _Get_co]):
    """A Decimal: NUMERIC on PostgreSQL, TEXT on SQLite, whose own decimals are binary floats.

    On SQLite the database can neither order nor sum it; that is done where the rows are read.
    """

    description = "A decimal number of any precision"

    def db_type(self, connection: Any) -> str:
        return "text" if connection.vendor == "sqlite" else "numeric"

    def to_python(self, value: Any) -> Decimal | None:
        if value is None:
            return None
        if isinstance(value, float):
            raise TypeError(f"{self.name}: a float is not exact; give a Decimal or a string")
        return Decimal(plain(Decimal(value)))

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Decimal | None:
        return None if value is None else Decimal(plain(Decimal(value)))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        number = self.to_python(value)
        if number is None:
            return None
        return plain(number) if connection.vendor == "sqlite" else number

    def value_to_string(self, obj: models.Model) -> str:
        value = self.value_from_object(obj)
        return "" if value is None else plain(Decimal(str(value)))
