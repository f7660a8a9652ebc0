#!/usr/bin/python3
"""What TLS refuses, and says about it; and that renewing a certificate moves no item. Run by test/tls/run.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOCAL = os.path.join(SOURCE, "tools", "zookeeper-local")
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 else os.path.join(SOURCE, "build")
DIVVY = os.path.join(BUILD, "tools", "divvy")
CERTIFICATES = os.environ["DIVVY_TEST_CERTIFICATES"]
PATIENCE_S = 60
TICK = ["--ensemble-tick", "100ms"]


def certificate(*path):
    return os.path.join(CERTIFICATES, *path)


class Server:
    """A server with the certificates of a folder."""

    def __init__(self, folder):
        started = subprocess.run([LOCAL, "start", "--parent", str(os.getpid()), "--tls-files", certificate(folder)],
                                 stdout=subprocess.PIPE, text=True, check=True)
        told = dict(shlex.split(line)[0].split("=", 1) for line in started.stdout.splitlines())
        self.secure, self.plain = told["DIVVY_CONNECT"], told["ZOOKEEPER_LOCAL_PLAIN"]
        self.folder = told["ZOOKEEPER_LOCAL_DIR"]

    def do(self, verb, *arguments):
        subprocess.run([LOCAL, verb, self.folder, *arguments], check=True)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without(*prefixes):
    """The environment without some variables; the command sees to SSL_CERT_FILE itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SSL_CERT_",) + prefixes)}


def lock(connect, *arguments, env=None, command=("true",), wait="4s"):
    return subprocess.run([DIVVY, "lock", "--connect", connect, "--connect-timeout", wait, *TICK, *arguments, "name",
                           *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, env=env or without())


class Refused(unittest.TestCase):
    """A server is started for each test that has certificates of its own."""

    def assert_refused(self, connect, *words, arguments=()):
        done = lock(connect, *arguments)
        self.assertEqual(done.returncode, 3, done.stderr)
        for word in (connect.split(":")[0], *words):
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stderr.count("is not used"), 1, done.stderr)  # It is told once.

    def with_server(self, folder):
        server = Server(folder)
        self.addCleanup(server.do, "stop")
        return server

    # A certificate of another CA.
    def test_other_ca(self):
        self.assert_refused(self.with_server("other").secure, "comes from no CA in", "ca.pem")

    def test_expired(self):
        self.assert_refused(self.with_server("expired").secure, "has expired", "renew")

    def test_wrong_name(self):
        self.assert_refused(self.with_server("name").secure, "another name than 127.0.0.1", "subjectAltName")

    # The good server: its plaintext port; a client's certificate that it does not take; both names that it has.
    def test_good(self):
        server = self.with_server("good")
        self.assert_refused(server.plain, "does not speak TLS", "secureClientPort")
        port = server.secure.split(":")[1]
        other = ["--tls-cert", certificate("other", "client.pem"), "--tls-key", certificate("other", "client.key")]
        self.assert_refused(server.secure, "refuses our certificate", "trust store", arguments=other)
        for connect in (server.secure, "localhost:" + port):
            done = lock(connect)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.command_and_files(server)

    def command_and_files(self, server):
        """A command gets the environment that divvy was started with; a key may have a password."""
        done = lock(server.secure, command=("env",))
        self.assertIn("DIVVY_LOCK_NAME=name\n", done.stdout)
        self.assertNotIn("SSL_CERT_DIR=/nonexistent", done.stdout)
        locked, password = certificate("good", "locked.key"), certificate("good", "locked.password")
        done = lock(server.secure, "--tls-key", locked, "--tls-key-password-file", password)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = lock(server.secure, "--tls-key", locked)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("tls_key_password_file", done.stderr)


class Silent(unittest.TestCase):
    """Servers that are no ZooKeeper: they take connections and say nothing, or hang up."""

    def listen(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        return listener, "127.0.0.1:%d" % listener.getsockname()[1]

    # They are looked at all at the same time, so that many hold nobody up for longer than one.
    def test_silent(self):
        server = Server("good")
        self.addCleanup(server.do, "stop")
        seconds = []
        for count in (1, 4):
            silent = [self.listen()[1] for _ in range(count)]
            began = time.monotonic()
            done = lock(",".join([*silent, server.secure]), wait="50s")
            seconds.append(time.monotonic() - began)
            self.assertEqual(done.returncode, 0, done.stderr)
            for address in silent:
                self.assertIn(address + " is not used: it takes the connection but says nothing", done.stderr)
        self.assertLess(seconds[1], 2 * seconds[0])

    @staticmethod
    def forward(connection, address):
        """Passes on what comes, in both directions, until one side ends."""
        server = socket.create_connection(address)

        def copy(source, sink):
            try:
                while data := source.recv(65536):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # The test is over, or the other side is.

        threading.Thread(target=copy, args=(connection, server), daemon=True).start()
        threading.Thread(target=copy, args=(server, connection), daemon=True).start()

    # The native client is in a handshake with a server that has fallen silent when another takes its place in the list.
    # Where our thread closed that connection, the native client hung or crashed.
    def test_falls_silent(self):
        server = Server("good")
        self.addCleanup(server.do, "stop")
        host, port = server.secure.split(":")
        first, first_address = self.listen()
        second = socket.socket()
        self.addCleanup(second.close)
        second.bind(("127.0.0.1", 0))  # It refuses connections until it listens.
        second_address = "127.0.0.1:%d" % second.getsockname()[1]
        kept = []

        def serve():
            try:
                self.forward(first.accept()[0], (host, int(port)))  # the look at it
                kept.append(first.accept()[0])
                second.listen()
                threading.Thread(target=lambda: [kept.append(first.accept()[0]) for _ in range(100)],
                                 daemon=True).start()
                while True:
                    self.forward(second.accept()[0], (host, int(port)))
            except OSError:
                pass  # The test is over.

        threading.Thread(target=serve, daemon=True).start()
        done = lock(first_address + "," + second_address, "--session-timeout", "60s", wait="50s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(first_address + " is not used: it takes the connection but says nothing", done.stderr)

    # A server that is being started hangs up: that says nothing about it.
    def test_hangs_up(self):
        listener, address = self.listen()

        def hang_up():
            while True:
                try:
                    listener.accept()[0].close()
                except OSError:
                    return  # The test is over.

        threading.Thread(target=hang_up, daemon=True).start()
        done = lock(address)
        listener.shutdown(socket.SHUT_RDWR)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr, "divvy: no ZooKeeper server answered at %s within 4000 ms\n" % address)


class Files(unittest.TestCase):
    """What is refused before a server is asked."""

    def assert_misused(self, *words, arguments=(), env=None):
        done = lock("127.0.0.1:1", *arguments, env=env)
        self.assertEqual(done.returncode, 2, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_files(self):
        self.assert_misused("tls_ca_file", "/nonexistent", arguments=["--tls-ca", "/nonexistent"])
        self.assert_misused("tls_certificate_file", arguments=["--tls-cert", certificate("good", "client.key")])
        self.assert_misused("tls_key_file", arguments=["--tls-key", certificate("good", "next.key")])
        self.assert_misused("--tls-cert is missing", env=without("DIVVY_TLS_CERT"))
        with tempfile.TemporaryDirectory(prefix="with,comma") as folder:
            shutil.copy(certificate("good", "ca.pem"), folder)
            self.assert_misused("comma", arguments=["--tls-ca", folder + "/ca.pem"])
            shutil.copy(certificate("good", "client.key"), folder)
            os.chmod(folder + "/client.key", 0o644)
            self.assert_misused("0644", "chmod 600", arguments=["--tls-key", folder + "/client.key"])

    # Debian's own client cannot do TLS, and divvy says what to install.
    def test_unsupported(self):
        self.assert_misused("built without TLS", "OpenSSL", env=without("LD_LIBRARY_PATH"))

    # A program that uses the library is refused where OpenSSL would trust other CAs too.
    def test_default_store(self):
        script = ("import ctypes, sys; d = ctypes.CDLL(sys.argv[1]); c = ctypes.c_void_p();"
                  "d.divvy_client_error.restype = ctypes.c_char_p;"
                  "print(d.divvy_client_open(ctypes.byref(c), None), d.divvy_client_error(None).decode());"
                  "d.divvy_client_close(c)")
        library = os.path.join(BUILD, "lib", "libdivvy.so")
        ours = {"DIVVY_ENSEMBLE_TICK_MS": "100", "SSL_CERT_FILE": certificate("good", "ca.pem"),
                "SSL_CERT_DIR": "/nonexistent"}
        for bad, word in (({"SSL_CERT_FILE": certificate("other", "ca.pem")}, "default file"),
                          ({"SSL_CERT_DIR": "/nonexistent:" + certificate("other")}, "default folder"), ({}, "0 ")):
            done = subprocess.run([sys.executable, "-c", script, library], env={**os.environ, **ours, **bad},
                                  capture_output=True, text=True, timeout=PATIENCE_S, check=True)
            self.assertIn(word, done.stdout)


class Sasl(unittest.TestCase):
    """On a server that knows one user, without TLS."""

    def write(self, **texts):
        """Files of a new folder, which only we can read."""
        self.folder = tempfile.mkdtemp(prefix="divvy-sasl.")
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in texts.items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text.replace("FOLDER", self.folder))
            os.chmod(file.name, 0o600)

    def start(self, *options):
        """A server that logs in by the file `jaas`. Returns its address."""
        provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
        options += ("-Djava.security.auth.login.config=%s/jaas" % self.folder, "-Dzookeeper.authProvider.1=" + provider)
        started = subprocess.run([LOCAL, "start", "--parent", str(os.getpid())], text=True, check=True,
                                 env={**os.environ, "JDK_JAVA_OPTIONS": " ".join(options)}, stdout=subprocess.PIPE)
        told = dict(line.split("=", 1) for line in started.stdout.splitlines())
        self.addCleanup(subprocess.run, [LOCAL, "stop", told["ZOOKEEPER_LOCAL_DIR"]])
        return told["DIVVY_CONNECT"]

    def assert_lock(self, connect, code, word, *arguments, env):
        done = lock(connect, *arguments, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(word, done.stderr)

    def test_digest(self):
        self.write(jaas='Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="sesame"; };',
                   right="sesame\n", wrong="other\n")
        connect, plain = self.start(), without("DIVVY_TLS_")
        right, wrong = (["--sasl-user", "bob", "--sasl-password-file", os.path.join(self.folder, name)]
                        for name in ("right", "wrong"))
        self.assert_lock(connect, 0, "", *right, env=plain)
        self.assert_lock(connect, 125, "refused the credentials", *wrong, env=plain)
        self.assert_lock(connect, 2, "TLS and SASL", *right, env=None)

    # GSSAPI, with a key distribution centre of our own. The native client asks for a ticket for the server's address,
    # and Kerberos looks for the name of that.
    def test_kerberos(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            place = "127.0.0.1:%d" % free.getsockname()[1]
        login = ("useKeyTab=true keyTab=\"FOLDER/server.keytab\" storeKey=true useTicketCache=false "
                 "principal=\"zookeeper/localhost@DIVVY.TEST\"")
        self.write(jaas="Server { com.sun.security.auth.module.Krb5LoginModule required %s; };" % login,
                   conf="[libdefaults]\n default_realm = DIVVY.TEST\n[realms]\n DIVVY.TEST = {\n  kdc = %s\n }\n"
                        "[domain_realm]\n localhost = DIVVY.TEST\n[logging]\n kdc = FILE:FOLDER/log\n" % place,
                   kdc="[kdcdefaults]\n kdc_listen = %s\n kdc_tcp_listen = %s\n[realms]\n DIVVY.TEST = {\n"
                       "  database_name = FOLDER/principal\n  key_stash_file = FOLDER/stash\n }\n" % (place, place))
        env = {**without("DIVVY_TLS_"), "KRB5_CONFIG": self.folder + "/conf", "KRB5_KDC_PROFILE": self.folder + "/kdc",
               "KRB5CCNAME": "FILE:%s/tickets" % self.folder, "PATH": os.environ["PATH"] + ":/usr/sbin"}
        for words in (["kdb5_util", "create", "-s", "-P", "master"],
                      ["kadmin.local", "addprinc", "-randkey", "zookeeper/localhost"],
                      ["kadmin.local", "addprinc", "-randkey", "bob"],
                      ["kadmin.local", "ktadd", "-k", self.folder + "/server.keytab", "zookeeper/localhost"],
                      ["kadmin.local", "ktadd", "-k", self.folder + "/bob.keytab", "bob"]):
            subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        centre = subprocess.Popen(["krb5kdc", "-n"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(centre.wait)
        self.addCleanup(centre.terminate)
        deadline = time.monotonic() + PATIENCE_S
        while subprocess.run(["kinit", "-k", "-t", self.folder + "/bob.keytab", "bob"], env=env, check=False,
                             stderr=subprocess.DEVNULL).returncode != 0:
            self.assertLess(time.monotonic(), deadline, "the key distribution centre does not answer")
        connect = self.start("-Djava.security.krb5.conf=%s/conf" % self.folder)
        self.assert_lock(connect, 0, "", "--sasl-mechanism", "GSSAPI", env=env)
        self.assert_lock(connect, 125, "refused the credentials", "--sasl-mechanism", "GSSAPI",
                         env={**env, "KRB5CCNAME": "FILE:/nonexistent"})


class Renewal(unittest.TestCase):
    """Certificates are renewed under members that hold items."""

    def member(self, name):
        """A member. Returns two functions: its lines so far, and what it has said on stderr."""
        out, said = os.path.join(self.folder, name), os.path.join(self.folder, name + ".said")
        with open(out, "wb") as stdout, open(said, "wb") as stderr:
            process = subprocess.Popen([DIVVY, "partition", "--connect", self.server.secure, "--path", "/renewal",
                                        *TICK,
                                        "--identifier", name, "--session-timeout", "50s", "--time-boundary", "100ms",
                                        *sum((["--item", "i%d" % i] for i in range(8)), []), "--json", "--tls-cert",
                                        self.certificate, "--tls-key", self.key], stdin=subprocess.DEVNULL,
                                       stdout=stdout, stderr=stderr, env=without())
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return lambda: [json.loads(line) for line in read(out).splitlines()], lambda: read(said)

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def test_renewal(self):
        self.folder = tempfile.mkdtemp(prefix="divvy-renewal.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.certificate, self.key = self.folder + "/client.pem", self.folder + "/client.key"
        for name in ("client.pem", "client.key"):
            shutil.copy(certificate("good", name), self.folder)
        self.server = Server("good")
        self.addCleanup(self.server.do, "stop")
        members = [self.member("a"), self.member("b")]
        told, said = [member[0] for member in members], [member[1] for member in members]
        owned = lambda: sorted(len(lines()[-1].get("owned", [])) if lines() else 0 for lines in told)
        self.wait(lambda: owned() == [4, 4], "each has four items: %s" % [lines() for lines in told])
        before = [len(lines()) for lines in told]
        # The client's new ones are renamed over the old ones; the server takes its own when it starts again.
        for name in ("client.key", "client.pem"):
            shutil.copy(certificate("good", name.replace("client", "next")), self.folder + "/new")
            os.rename(self.folder + "/new", os.path.join(self.folder, name))
        self.server.do("restart", "1")
        self.wait(lambda: all("the connection is back" in text() for text in said), "both are back")
        self.assertEqual([len(lines()) for lines in told], before, [lines() for lines in told])


if __name__ == "__main__":
    unittest.main(verbosity=2)
