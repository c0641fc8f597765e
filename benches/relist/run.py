"""Plays an operator behind each of two sidecars, on a real API server: run it through `make -C benches relist`.

The program of the leader stops, and its sidecar leads on. For REFUSED seconds a user changes OBJECTS objects, one after the
other, so the other operator is refused. Then the leader's sidecar gets SIGTERM. The table says when all objects are right,
how many writes were refused, and how many errors the operator has logged. ONLY is a regular expression: it plays the operators
whose names have a match."""

import json, os, re, signal, socket, ssl, subprocess, sys, tempfile, threading, time, urllib.request
from datetime import datetime

ROUNDS, REFUSED, OBJECTS, PATIENCE = (int(os.environ.get(name) or default) for name, default in
                                      [("ROUNDS", 2), ("REFUSED", 60), ("OBJECTS", 50), ("PATIENCE", 150)])
ASSETS, HERE = os.environ["KUBEBUILDER_ASSETS"], os.path.dirname(os.path.abspath(__file__))
SIDECAR, GO, KOPF = sys.argv[1:]
PROTOBUF, NO_STREAMING = {"CONTENT_TYPE": "application/vnd.kubernetes.protobuf"}, {"KUBE_FEATURE_WatchListClient": "false"}
JSON = {"CONTENT_TYPE": "application/json"}
OPERATORS = {
    "controller-runtime": JSON,
    "controller-runtime, protobuf": PROTOBUF,
    "controller-runtime, protobuf, without streaming lists": PROTOBUF | NO_STREAMING,
    "controller-runtime, `GenerationChangedPredicate`": JSON | {"FILTER": "generation"},
    "controller-runtime, a refused object again after 10 s": JSON | {"WAY": "later"},
    "controller-runtime, pauses up to 10 s": JSON | {"WAY": "backoff"},
    "controller-runtime that asks the sidecar": JSON | {"WAY": "ask"},
    "controller-runtime, the sidecar's page as its lock": JSON | {"WAY": "lock"},
    "controller-runtime that elects too": JSON | {"WAY": "elect"},
    "kopf, `on.create` and `on.update`": {"HANDLER": "change"},
    "kopf, `on.event`": {"HANDLER": "event"},
    "kopf, `timer`": {"HANDLER": "timer"},
}
OPERATORS = {name: environment for name, environment in OPERATORS.items() if re.search(os.environ.get("ONLY", ""), name)}
folder, running = tempfile.mkdtemp(prefix="relist."), []


def start(name, *command, **environment):
    log = open(f"{folder}/{name}.log", "a")
    running.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=os.environ | environment))
    return running[-1]


def write(name, content):
    with open(f"{folder}/{name}", "w") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return file.name


def port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def until(what, patience, condition):
    end = time.time() + patience
    while not condition():
        if time.time() > end:
            raise TimeoutError(what)
        time.sleep(0.1)


def seconds(written):
    return datetime.fromisoformat(written).timestamp()


def kubeconfig(name, cluster, user):
    return write(name, {"clusters": [{"name": "x", "cluster": cluster}], "users": [{"name": "x", "user": user}],
                        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "current-context": "x"})


def start_server():
    etcd, peer, server = (f"://127.0.0.1:{port()}" for _ in range(3))
    start("etcd", f"{ASSETS}/etcd", f"--listen-client-urls=http{etcd}", f"--advertise-client-urls=http{etcd}",
          f"--listen-peer-urls=http{peer}", "--unsafe-no-fsync")
    subprocess.run(["openssl", "genrsa", "-out", f"{folder}/key"], check=True, capture_output=True)
    write("tokens", "".join(f"{user},{user},{user}\n" for user in ["user", "a", "b"]))
    write("policy", {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["ResponseStarted", "ResponseComplete"],
                     "rules": [{"level": "Metadata"}]})
    start("kube-apiserver", f"{ASSETS}/kube-apiserver", f"--etcd-servers=http{etcd}", f"--secure-port={server.split(':')[2]}",
          "--bind-address=127.0.0.1", "--cert-dir=certificates", "--authorization-mode=AlwaysAllow", "--token-auth-file=tokens",
          "--service-account-issuer=https://x", "--service-account-key-file=key", "--service-account-signing-key-file=key",
          "--service-cluster-ip-range=10.96.0.0/16", "--audit-policy-file=policy", "--audit-log-path=audit")
    return f"https{server}"


def ask(method, path, body=None):
    head = {"Authorization": "Bearer user", "Content-Type": f"application/{'merge-patch+' * (method == 'PATCH')}json"}
    for _ in range(300):
        request = urllib.request.Request(server + path, json.dumps(body).encode() if body else None, head, method=method)
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
                return json.load(answer)
        except OSError as error:
            if getattr(error, "code", None) == 404:
                return {}
            time.sleep(0.2)  # the server starts, or is busy
    raise TimeoutError(path)


def play(namespace, environment, again, results):
    path, pages, sidecars, programs = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies", {}, {}, {}
    spec = lambda wanted: {"podSelector": {"matchLabels": {"wanted": wanted}}}
    lease = lambda: ask("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/x").get("spec", {})

    def begin(replica):
        name, (listen, status, pages[replica]) = f"{namespace}-{replica}", (f"127.0.0.1:{port()}" for _ in range(3))
        config = kubeconfig(f"{name}-sidecar.config", {"server": server, "insecure-skip-tls-verify": True}, {"token": replica})
        sidecars[replica] = start(f"{name}-sidecar", SIDECAR, "--kubeconfig", config, "--lease", f"{namespace}/x", "--timing",
                                  "fast", "--identity", replica, "--listen", listen, "--status", status,
                                  "--metrics", pages[replica], "--list-again", again)
        until("a leads", 60, lambda: lease().get("holderIdentity") == "a")
        kopf = [KOPF, "run", "--standalone", "--namespace", namespace, f"{HERE}/with_kopf.py"]
        programs[replica] = start(name, *(kopf if "HANDLER" in environment else [GO, namespace]), **environment,
                                  KUBECONFIG=kubeconfig(f"{name}.config", {"server": f"http://{listen}"}, {}),
                                  LEADER_PAGE=f"http://{status}/leader")

    def wrong():
        seen = lambda it: it["metadata"].get("annotations", {}).get("seen")
        return sum(seen(it) != it["spec"]["podSelector"]["matchLabels"]["wanted"] for it in ask("GET", path)["items"])

    def refused():
        page = urllib.request.urlopen(f"http://{pages['b']}/metrics").read().decode()
        return sum(int(count) for count in re.findall(r'^leader_gate_writes_total{.*decision="rejected".*} (\d+)$', page, re.M))

    def errors():
        return len(re.findall(r"^(?:E\d{4} |.*\[ERROR )", open(f"{folder}/{namespace}-b.log").read(), re.M))

    ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for number in range(OBJECTS):
        ask("POST", path, {"metadata": {"name": f"x{number}"}, "spec": spec("0")})
    begin("a")
    until("all objects are right", 90, lambda: not wrong())
    begin("b")
    time.sleep(10)
    programs["a"].send_signal(signal.SIGSTOP)
    time.sleep(1)  # each of its threads stops
    for number in range(OBJECTS):
        ask("PATCH", f"{path}/x{number}", {"spec": spec("1")})
        time.sleep(REFUSED / OBJECTS)
    assert wrong() == OBJECTS, "an operator has written"
    sidecars["a"].terminate()
    until("b leads", 30, lambda: lease().get("holderIdentity") == "b")
    gain = seconds(lease()["acquireTime"])
    try:
        until("all objects are right", PATIENCE, lambda: not wrong())
        right = f"{time.time() - gain:.1f}"
    except TimeoutError:
        right = f"{wrong()} of {OBJECTS} not within {PATIENCE} s"
    lists = 0
    for event in (json.loads(line) for line in open(f"{folder}/audit") if line.endswith("\n")):
        is_new = event["user"]["username"] == "b" and seconds(event["requestReceivedTimestamp"]) >= gain
        if is_new and event["requestURI"].split("?")[0] == path:
            lists += event["verb"] == "list" or "sendInitialEvents=true" in event["requestURI"]
    results.append((right, lists, refused(), errors()))
    for process in [*sidecars.values(), *programs.values()]:
        process.kill()


try:
    server, results = start_server(), {}
    for turn in range(ROUNDS):
        threads = []
        for number, (name, again) in enumerate((name, again) for name in OPERATORS for again in ["true", "false"]):
            arguments = (f"n{turn}-{number}", OPERATORS[name], again, results.setdefault((name, again), []))
            threads.append(threading.Thread(target=play, args=arguments))
            threads[-1].start()
        for thread in threads:
            thread.join()
    print("| operator | `--list-again` | seconds from the gain | lists after it | refused writes | errors in the log |")
    print("| --- " * 6 + "|")
    for (name, again), rounds in results.items():
        print(f"| {name} | `{again}` |", " | ".join("; ".join(str(value) for value in column) for column in zip(*rounds)), "|")
finally:
    for process in reversed(running):
        process.kill()
    print(f"The logs are in {folder}.", file=sys.stderr)
