"""What rigs on an object store share: the store, or the reason why there is none, and what is said of it."""

from collections.abc import Sequence
from typing import Any

from harness.object_stores import Objects
from harness.rigs.rig import NothingToRevive


class OnObjectStore(NothingToRevive):
    """A rig with a field `objects`; see `harness.rigs.rig.Rig`."""

    objects: Objects | str

    @property
    def kind(self) -> str:
        return "local" if isinstance(self.objects, str) else self.objects.kind

    @property
    def secrets(self) -> Sequence[str]:
        return [] if isinstance(self.objects, str) else [self.objects.store.secret_key]

    def servers(self) -> dict[str, Any]:
        """Return what environment.json says of the server: nothing where there is none."""
        if isinstance(self.objects, str):
            return {}
        return {"s3": {"version": self.objects.server.version, "settings": self.objects.server.settings}}
