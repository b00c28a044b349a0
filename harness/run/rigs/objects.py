"""Code that rigs on an object store share: the store, or the reason without one, and its description."""

from abc import abstractmethod
from collections.abc import Sequence

from harness.lab.object_stores import Objects
from harness.model import Case, ObjectStore
from harness.run.rigs.rig import AnyRig, stopping_where_not_ours


class OnObjectStore(AnyRig):
    """A rig with a field `objects` that knows which cases are `on_s3`; see `harness.run.rigs.rig.Rig`."""

    objects: Objects | str

    @abstractmethod
    def on_s3(self, case: Case) -> bool:
        """Return whether a case reads from the store or writes to it."""

    def store(self, case: Case) -> ObjectStore | None:
        """Return the store at the address that a case uses; None if it uses none, or the lab has none."""
        return self.objects.store if self.on_s3(case) and not isinstance(self.objects, str) else None

    @property
    def lab_name(self) -> str:
        return "local" if isinstance(self.objects, str) else self.objects.lab_name

    @property
    def secrets(self) -> Sequence[str]:
        return [] if isinstance(self.objects, str) else self.objects.store.secrets

    def server_of_store(self) -> dict[str, object]:
        """Return the server's facts for environment.json: empty without one."""
        return {} if isinstance(self.objects, str) else {"s3": self.objects.server.facts}

    def died(self, case: Case) -> bool:
        """See `Rig`."""
        return not isinstance(self.objects, str) and self.on_s3(case) and bool(self.objects.lab.dead())

    def revive(self) -> list[str]:
        """See `Rig`."""
        return [] if isinstance(self.objects, str) else self.objects.revive()

    def _greet(self, case: Case) -> None:
        """Check that the store answers at the case's address. Raises NoAnswer, or Stop if it is not the lab's."""
        if not isinstance(self.objects, str) and (store := self.store(case)):
            with stopping_where_not_ours(self.objects.lab_name):
                self.objects.greet(store)
