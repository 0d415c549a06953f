"""What each permission of an account is for. The reference page and the messages about missing permissions contain
these texts."""

from trimtab.installation.installed_processes import find_installed_process


def purpose_of(process: str, resource: str, *, group: str = "", name: str = "", own: bool) -> str:
    """Returns what a permission is for. `own`: whether the permission is for Trimtab's own namespace only."""
    installed_process = find_installed_process(process)
    if name in installed_process.object_purposes:
        return installed_process.object_purposes[name]
    purposes = installed_process.namespace_purposes if own else installed_process.cluster_purposes
    return purposes.get(f"{resource}.{group}") or purposes.get(resource, "")
