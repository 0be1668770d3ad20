"""The words of the audit trail (contract.md section 4)."""

from __future__ import annotations

OPERATIONS = (
    "create_worker",
    "auto_register",
    "delete_worker",
    "worker.mac.update",
    "worker.boot.set",
    "worker.disk.create",
    "worker.disk.delete",
    "lun.list",
    "lun.create_disk",
    "lun.create_cd",
    "lun.delete",
    "lun.scan",
    "agent.register",
    "agent.update",
    "agent.delete",
    "agent.probe",
    "agent.create_disk",
    "master.list",
    "settings.auto_register",
    "dnsmasq.reload",
    "boot.refused",
    "boot.stale_name",
    "external.edit",
    "file.broken",
)
STATUSES = ("started", "ok", "failed", "rollback")
