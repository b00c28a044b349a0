"""What tests of rigs order from them."""

from collections.abc import Callable

from harness import registry
from harness.model import Case, Value
from harness.run.rigs.rig import Order
from harness.settings import Settings


def case(transport: str, dataset: str = "integers", **parameters: Value) -> Case:
    """Return a case of a transport; without parameters it is about 20 rows."""
    return Case(registry.one(transport), "an experiment", dataset, parameters or {"rows": 20})


def order(settings: Settings, *cases: Case, say: Callable[[str], None] = lambda text: None) -> Order:
    """Return an order for these cases."""
    return Order(settings, "the-run", "embedded", cases, 1, 120.0, say)
