"""Our own rules for deploy/k8s, beyond what a schema can express.

Pods: Pod Security `restricted`, a read-only root, no API token, all three probes, memory limits, a
grace period that holds preStop and drain. References: services, probes and ports by name, config
maps, claims, accounts.
"""

from schema_check import name_of

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
DRAIN_UNITS = {"--drain_seconds": 1.0, "--drain_ms": 0.001}


def policy_findings(objects: list[dict]) -> list[str]:
    workloads = [entry for entry in objects if entry.get("kind") == "Deployment"]
    services = [entry for entry in objects if entry.get("kind") == "Service"]
    findings = []
    for workload in workloads:
        served = any(_selects(service, workload) for service in services)
        problems = [*_pod_problems(workload, served), *_reference_problems(workload, objects)]
        findings += [f"{name_of(workload)}: {problem}" for problem in problems]
    for service in services:
        findings += [
            f"{name_of(service)}: {problem}" for problem in _service_problems(service, workloads)
        ]
    return findings


def _template(workload: dict) -> dict:
    return workload.get("spec", {}).get("template", {})


def _pod(workload: dict) -> dict:
    return _template(workload).get("spec", {})


def _labels(workload: dict) -> dict:
    return _template(workload).get("metadata", {}).get("labels", {})


def _selects(service: dict, workload: dict) -> bool:
    selector = service.get("spec", {}).get("selector") or {}
    return bool(selector) and selector.items() <= _labels(workload).items()


def _pod_problems(workload: dict, served: bool):
    pod = _pod(workload)
    security = pod.get("securityContext", {})
    if security.get("runAsNonRoot") is not True:
        yield "securityContext.runAsNonRoot must be true"
    if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "securityContext.seccompProfile.type must be RuntimeDefault"
    if pod.get("automountServiceAccountToken") is not False:
        yield "automountServiceAccountToken must be false"
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"{field} must not be set"
    selector = workload.get("spec", {}).get("selector", {}).get("matchLabels", {})
    if not selector.items() <= _labels(workload).items():
        yield "the selector does not match the pod's labels"
    for container in pod.get("containers", []):
        for problem in (
            *_container_problems(container),
            *_shutdown_problems(workload, container, served),
        ):
            yield f"container {container.get('name')}: {problem}"


def _container_problems(container: dict):
    security = container.get("securityContext", {})
    if security.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation must be false"
    if security.get("readOnlyRootFilesystem") is not True:
        yield "readOnlyRootFilesystem must be true"
    if security.get("capabilities", {}).get("drop") != ["ALL"]:
        yield "capabilities.drop must be [ALL]"
    resources = container.get("resources", {})
    for kind, name in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
        if name not in resources.get(kind, {}):
            yield f"resources.{kind}.{name} is missing"
    named = {port.get("name") for port in container.get("ports", [])}
    numbers = {port.get("containerPort") for port in container.get("ports", [])}
    for probe in PROBES:
        if probe not in container:
            yield f"{probe} is missing"
            continue
        target = container[probe].get("httpGet") or container[probe].get("grpc") or {}
        if target.get("port") not in named | numbers:
            yield f"{probe} asks port {target.get('port')}, which the container does not declare"


def _shutdown_problems(workload: dict, container: dict, served: bool):
    sleep = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    if served and not sleep:
        yield "a Service leads here, so preStop must sleep until its endpoints are withdrawn"
    drain = _drain_seconds(container)
    if drain is None:
        yield "a flag must say how long the process drains (--drain_seconds or --drain_ms)"
        return
    grace = _pod(workload).get("terminationGracePeriodSeconds", 30)
    if grace < sleep + drain:
        yield f"terminationGracePeriodSeconds {grace} is less than preStop {sleep} + drain {drain:g}"


def _drain_seconds(container: dict) -> float | None:
    for argument in container.get("args", []):
        for flag, unit in DRAIN_UNITS.items():
            if argument.startswith(f"{flag}="):
                return float(argument.partition("=")[2]) * unit
    return None


def _reference_problems(workload: dict, objects: list[dict]):
    pod = _pod(workload)
    wanted = {("ServiceAccount", pod.get("serviceAccountName"))}
    for container in pod.get("containers", []):
        for source in container.get("envFrom", []):
            wanted.add(("ConfigMap", source.get("configMapRef", {}).get("name")))
    for volume in pod.get("volumes", []):
        if "persistentVolumeClaim" in volume:
            wanted.add(("PersistentVolumeClaim", volume["persistentVolumeClaim"].get("claimName")))
        if "configMap" in volume:
            wanted.add(("ConfigMap", volume["configMap"].get("name")))
    there = {(entry.get("kind"), entry.get("metadata", {}).get("name")) for entry in objects}
    for kind, name in sorted(wanted - there, key=str):
        yield f"refers to {kind}/{name}, which is not in this folder"


def _service_problems(service: dict, workloads: list[dict]):
    chosen = [workload for workload in workloads if _selects(service, workload)]
    if not chosen:
        yield "selects no pod of this folder"
    for workload in chosen:
        names = {
            port.get("name")
            for container in _pod(workload).get("containers", [])
            for port in container.get("ports", [])
        }
        for port in service.get("spec", {}).get("ports", []):
            if port.get("targetPort") not in names:
                yield f"targetPort {port.get('targetPort')} is no port of {name_of(workload)}"
