"""An operator with kopf, to run behind a sidecar: it copies a label of each NetworkPolicy's selector into an annotation. The
variable HANDLER says by which kind of handler."""

import os

import kopf

handler, kind = os.environ["HANDLER"], "networkpolicies"


@kopf.on.startup()
async def configure(settings, **_):
    settings.posting.enabled = False  # it writes no Events


async def see(spec, annotations, patch, **_):
    wanted = spec["podSelector"]["matchLabels"]["wanted"]
    if annotations.get("seen") != wanted:
        patch.metadata.annotations["seen"] = wanted


if handler == "change":
    kopf.on.create(kind)(see)
    kopf.on.update(kind, field="spec")(see)
elif handler == "event":
    kopf.on.event(kind)(see)
elif handler == "timer":
    kopf.timer(kind, interval=2)(see)
