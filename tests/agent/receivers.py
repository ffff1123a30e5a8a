# SPDX-License-Identifier: BSD-2-Clause
"""Receivers for the agent's checks: HTTP/1.1 with faults on demand, gRPC; both decode what they
get.
"""

import glob
import gzip
import http.server
import importlib
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "live"))

import harness  # noqa: E402

Got = namedtuple("Got", "path headers message key when")

OTLP_GRPC = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
PARCA_GRPC = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"

# run.sh's TERM ends as an exit does: no agent is left behind.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

_pb = None


def pb():
    """The messages of profiles.proto."""
    global _pb
    if _pb is None:
        try:
            import google.protobuf  # noqa: F401
            subprocess.run([
                "protoc", "-I", HERE, "--python_out",
                harness.tmpdir(),
                os.path.join(HERE, "profiles.proto")
            ], check=True, capture_output=True)
        except (ImportError, OSError) as e:
            raise harness.Skip("python3-protobuf or protoc is missing (%s)" % e)
        sys.path.insert(0, harness.tmpdir())
        _pb = importlib.import_module("profiles_pb2")
    return _pb


def certificate(name, host="127.0.0.1"):
    """A self-signed certificate: (certificate file, key file)."""
    crt, key = harness.tmpfile(name + ".crt"), harness.tmpfile(name + ".key")
    if not os.path.exists(crt):
        subprocess.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:" + host,
            "-keyout", key, "-out", crt
        ], check=True, capture_output=True)
    return crt, key


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- HTTP
# ------------------------------------------------------------------------------------------------

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        r = self.server.receiver
        fault = r.next_fault()
        length = int(self.headers["Content-Length"])
        if fault == "reset":        # dies while it reads
            self.rfile.read(length // 2)
            self.abort()
            return
        body = self.rfile.read(length)
        if fault == "lost":         # takes it, and dies before it answers
            r.accept(self.path, self.headers, body)
            self.abort()
            return
        if fault == "garbage":
            self.wfile.write(b"\x16\x03\x01garbage\r\n\r\n")
            self.abort()
            return
        if fault == "loris":        # a byte of the status line every now and then
            for c in b"HTTP/1.1 503 Serv":
                try:
                    self.wfile.write(bytes([c]))
                    self.wfile.flush()
                except OSError:
                    break
                time.sleep(0.3)
            self.abort()
            return
        if fault == "slow":
            time.sleep(random.random() * 0.03)
        if fault in ("ok", "slow", "cut"):
            r.accept(self.path, self.headers, body)
        if fault == "cut":          # says yes, and stops in the middle of the body
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")
            self.wfile.flush()
            time.sleep(1)
            self.abort()
            return
        self.answer(fault)

    def answer(self, fault):
        status = 200 if fault in ("ok", "slow") else int(fault.split(":")[0])
        self.send_response(status)
        if ":" in fault:
            self.send_header("Retry-After", fault.split(":")[1])
        reply = self.server.receiver.reply if status == 200 else b"no"
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        try:
            self.wfile.write(reply)
        except OSError:
            pass

    def abort(self):
        self.close_connection = True
        try:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        except OSError:
            pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        pass        # clients that are killed reset their connections


class HttpReceiver:
    """faults: what to do with the requests, in turn; then `then`: ok, slow, cut, lost, reset,
    garbage, loris, or "STATUS[:RETRY-AFTER]", which answers without keeping the body. decode: body
    to message; None: kept as bytes.
    """

    def __init__(self, faults=(), then="ok", tls=None, decode=None, reply=b"", port=0,
                 on_accept=None):
        self.got, self.requests, self.times, self.reply = [], 0, [], reply
        self.faults, self.then, self.decode, self.on_accept = list(faults), then, decode, on_accept
        self.lock = threading.Lock()
        self.server = Server(("127.0.0.1", port), Handler)
        self.server.receiver = self
        self.port = self.server.server_address[1]
        if tls:
            ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            ctx.load_cert_chain(*tls)
            self.server.socket = ctx.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", self.port)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def next_fault(self):
        with self.lock:
            self.requests += 1
            self.times.append(time.monotonic())
            return self.faults.pop(0) if self.faults else self.then

    def accept(self, path, headers, body):
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        message = self.decode(body) if self.decode else body
        with self.lock:
            self.got.append(
                Got(path, headers, message, headers.get("Idempotency-Key"), time.monotonic()))
            if self.on_accept:
                self.on_accept(self.got[-1])

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


# ---- gRPC
# ------------------------------------------------------------------------------------------------

class GrpcReceiver:
    def __init__(self, tls=None, codes=(), kind="ExportRequest", path=OTLP_GRPC):
        try:
            import grpc
        except ImportError:
            raise harness.Skip("python3-grpcio is missing")
        from concurrent import futures
        self.got, self.codes, self.requests, self.grpc = [], list(codes), 0, grpc
        message, reply = getattr(pb(), kind), pb().ExportResponse()

        def call(request, context):
            self.requests += 1
            if self.codes:
                code = self.codes.pop(0)
                if code is not None:
                    context.abort(code, "on request")
            meta = dict(context.invocation_metadata())
            self.got.append(Got(path, meta, request, meta.get("idempotency-key"), time.monotonic()))
            return reply

        class Handlers(grpc.GenericRpcHandler):
            def service(self, details):
                if details.method != path:
                    return None
                return grpc.unary_unary_rpc_method_handler(call, message.FromString,
                                                           lambda m: m.SerializeToString())

        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((Handlers(),))
        if tls:
            with open(tls[0], "rb") as crt, open(tls[1], "rb") as key:
                creds = grpc.ssl_server_credentials([(key.read(), crt.read())])
            self.port = self.server.add_secure_port("127.0.0.1:0", creds)
        else:
            self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", self.port)
        self.server.start()

    def stop(self):
        self.server.stop(0)


def decode_otlp(body):
    return pb().ExportRequest.FromString(body)


# ---- What OTLP must look like
# ----------------------------------------------------------------------------

def otlp_profiles(req):
    return [p for rp in req.resource_profiles for sp in rp.scope_profiles for p in sp.profiles]


def windows_from_now(r):
    """A function that returns what came since its last call: of windows that begin now or later."""
    now, seen = time.time_ns(), len(r.got)

    def fresh():
        nonlocal seen
        got = r.got[seen:]
        seen += len(got)
        return [
            g for g in got if any(p.time_unix_nano >= now for p in otlp_profiles(g.message)[:1])
        ]

    return fresh


def otlp_folded(req, into=None, kind="samples"):
    """{window's time in ms: Counter of folded lines} of the profiles of that sample type."""
    d, windows = req.dictionary, {} if into is None else into

    def name(i):
        lines = d.location_table[i].lines
        return d.string_table[d.function_table[lines[0].function_index].name_strindex].replace(
            ";", ":") if lines else "?"

    stacks = [[name(i) for i in reversed(s.location_indices)] for s in d.stack_table]
    for p in otlp_profiles(req):
        if d.string_table[p.sample_type.type_strindex] != kind:
            continue
        c = windows.setdefault(p.time_unix_nano // 1000000, Counter())
        for s in p.samples:
            attrs = {
                d.string_table[d.attribute_table[a].key_strindex]: d.attribute_table[a].value
                for a in s.attribute_indices
            }
            frames = [f for f in stacks[s.stack_index] if f != "[no stack]"]
            c[";".join([attrs["thread.name"].string_value.replace(";", ":")] +
                       frames)] += s.values[0]
    return windows


def folded_file(path):
    c = Counter()
    with open(path, encoding="utf-8") as f:
        for line in f:
            text, _, n = line.rstrip("\n").rpartition(" ")
            c[text] += int(n)
    return c


def copies(directory, off_cpu=False):
    """The same for what the agent wrote to --copy."""
    found = {}
    for path in windows(directory):
        name = os.path.basename(path)
        if (".off_cpu." in name) == off_cpu:
            found[int(name.rsplit("-", 2)[1])] = folded_file(path)
    return found


def windows(directory):
    """The files of protocol file, in a folder for each day."""
    day = "20[0-9][0-9]-[01][0-9]-[0-3][0-9]"
    return sorted(glob.glob(os.path.join(directory, day, "sfbpf-*")))
