"""The program where there is nothing but itself: it starts, and looks names up by DNS and in /etc/hosts.

    empty_root.py PROGRAM

It wants to be root in a network of its own, where it is the DNS server, the upstream and the client.
"""

import http.client
import http.server
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

WORDS = b"hello from the upstream"


def answer_names(server: socket.socket) -> None:
    """Says of every name that it is this machine."""
    while True:
        asked, who = server.recvfrom(4096)
        end = 12
        while asked[end]:
            end += asked[end] + 1
        (kind,) = struct.unpack(">H", asked[end + 1 : end + 3])
        question = asked[12 : end + 5]
        # A (1) has an address; AAAA and all else have none.
        records = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01" if kind == 1 else b""
        counts = struct.pack(">HHHH", 1, 1 if records else 0, 0, 0)
        server.sendto(asked[:2] + b"\x81\x80" + counts + question + records, who)


class Upstream(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(WORDS)))
        self.end_headers()
        self.wfile.write(WORDS)

    def log_message(self, format: str, *args: object) -> None:
        pass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def asked(port: int) -> bytes:
    for _ in range(100):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/v1/models")
            return connection.getresponse().read()
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise SystemExit("the relay does not listen after 10 s")


def serves(root: str, name: str, upstream: int) -> None:
    port = free_port()
    line = ["/steady-relay", "serve", "--port", str(port), "--upstream", f"http://{name}:{upstream}"]
    relay = subprocess.Popen(line, env={}, preexec_fn=lambda: (os.chroot(root), os.chdir("/")))
    try:
        got = asked(port)
        assert got == WORDS, f"{name}: {got!r}"
    finally:
        relay.terminate()
        assert relay.wait(20) == 0, "it does not stop"


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        shutil.copy(sys.argv[1], os.path.join(root, "steady-relay"))
        upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names.bind(("127.0.0.1", 53))
        threading.Thread(target=answer_names, args=(names,), daemon=True).start()
        serves(root, "by-dns.example", upstream.server_port)
        os.mkdir(os.path.join(root, "etc"))
        with open(os.path.join(root, "etc", "hosts"), "w") as hosts:
            hosts.write("127.0.0.1 by.hosts\n")
        serves(root, "by.hosts", upstream.server_port)
    print("an empty root is enough")


main()
