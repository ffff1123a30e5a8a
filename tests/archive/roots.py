# SPDX-License-Identifier: BSD-2-Clause
"""Root directories of other systems, made from Debian's packages: with nothing but busybox, with
musl, and of an old release. They stay in build/archive for the next run. As a program: makes them.
"""

import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "tests", "live"))

import harness  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = os.path.join(TOP, "build", "archive")
TRIPLE = "x86_64-linux-gnu"
PASSWD = "root:x:0:0:root:/root:/bin/sh\nworker:x:1234:1234:worker:/:/bin/sh\n"


def call(*argv, **kw):
    p = subprocess.run(argv, capture_output=True, text=True, errors="replace", **kw)
    if p.returncode:
        raise harness.Skip("%s: %s" % (argv[0], (p.stderr or p.stdout).strip()[-200:]))
    return p.stdout


def packages(suite, *names):
    """A directory with these packages of a suite ("" is this machine's), unpacked."""
    at = os.path.join(WORK, "packages" + suite)
    call("scripts/apt-foreign.sh", "amd64" + (suite and "/" + suite),
         os.path.join(WORK, "foreign" + suite), "unpack", at, *names, cwd=TOP)
    return at


def write(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def new_root(name):
    root = os.path.join(WORK, name)
    shutil.rmtree(root, ignore_errors=True)
    for d in ("bin", "etc", "tmp", "proc", "sys", "dev", "root", "work"):
        os.makedirs(os.path.join(root, d))
    write(root, "etc/passwd", PASSWD)
    return root


def add_busybox(root):
    busybox = shutil.which("busybox")
    if not busybox or not subprocess.run(["ldd", busybox], capture_output=True).returncode:
        busybox = os.path.join(packages("", "busybox-static"), "bin/busybox")
    shutil.copy(busybox, root + "/bin/busybox")
    for tool in call(root + "/bin/busybox", "--list").split():
        if tool != "busybox":
            os.symlink("busybox", root + "/bin/" + tool)


def add_python(root):
    """This machine's, with its libraries: a root without a C library of its own has none."""
    python = os.path.realpath("/usr/bin/python3")
    name = os.path.basename(python)
    files = [python] + re.findall(r"(/\S+) \(0x", call("ldd", python))
    for f in files:
        os.makedirs(root + os.path.dirname(f), exist_ok=True)
        shutil.copy(f, root + f)
    shutil.copytree("/usr/lib/" + name, root + "/usr/lib/" + name, ignore=shutil.ignore_patterns(
        "test", "__pycache__", "config-*", "*.so", "lib2to3", "idlelib"))
    return python


def add_go(root):
    call("go", "build", "-o", root + "/work/spin-go", HERE + "/spin.go",
         env=dict(os.environ, CGO_ENABLED="0", GO111MODULE="off", GOFLAGS=""))


def add_c(root, *options, compiler="gcc"):
    call(compiler, "-O2", "-g", "-o", root + "/work/spin-c", HERE + "/spin.c", *options)


def add_all(root, python):
    shutil.copy(HERE + "/spin.py", root + "/work/spin.py")
    try:
        add_go(root)
    except (OSError, harness.Skip) as e:
        harness.note("no go program in %s: %s" % (root, e))
    write(root, "etc/hosts", "127.0.0.1 localhost receiver.test\n")
    write(root, "work/python", python)


def nothing():
    """Only a static busybox, and programs that bring what they need."""
    root = new_root("nothing")
    add_busybox(root)
    add_c(root, "-static")
    add_all(root, add_python(root))


def musl():
    """musl's loader, busybox, and a program that was linked with musl."""
    root = new_root("musl")
    add_busybox(root)
    at = packages("", "musl", "musl-dev")
    lib = at + "/usr/lib/x86_64-linux-musl"
    os.makedirs(root + "/lib")
    shutil.copy(at + "/lib/x86_64-linux-musl/libc.so", root + "/lib/ld-musl-x86_64.so.1")
    add_c(root, "-nostdinc", "-isystem", at + "/usr/include/x86_64-linux-musl", "-nostdlib", "-pie",
          "-fPIE", lib + "/Scrt1.o", lib + "/crti.o", lib + "/crtn.o",
          "-L%s/lib/x86_64-linux-musl" % at, "-lc", "-Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1")
    add_all(root, add_python(root))


def bullseye():
    """Debian 11: glibc 2.31, its Python and a program that was linked with its C library. Its name
    services and locales would be loaded by a careless program.
    """
    root = os.path.join(WORK, "bullseye")
    if not os.path.exists(root + "/work"):
        shutil.rmtree(root, ignore_errors=True)
        sources = "".join(open(f).read() for f in glob.glob("/etc/apt/sources.list.d/*.sources"))
        uri = re.search(r"^URIs: *(\S+)", sources, re.M)
        if not uri or not shutil.which("debootstrap"):
            raise harness.Skip("no debootstrap, or no source of packages")
        call("debootstrap", "--variant=minbase", "--include=python3-minimal,libc6-dev,locales",
             "bullseye", root, uri.group(1))
        os.makedirs(root + "/work")
        write(root, "etc/passwd", PASSWD)
        write(root, "etc/nsswitch.conf", "passwd: compat systemd\ngroup: compat systemd\n"
              "hosts: mymachines resolve [!UNAVAIL=return] hesiod compat files dns\n")
        call("chroot", root, "localedef", "-i", "de_DE", "-f", "ISO-8859-1", "de_DE")
    lib = root + "/lib/%s/" % TRIPLE
    add_c(root, "-nodefaultlibs", "-B%s/usr/lib/%s" % (root, TRIPLE), lib + "libc.so.6",
          "%s/usr/lib/%s/libc_nonshared.a" % (root, TRIPLE), "-lgcc",
          "-Wl,--unresolved-symbols=ignore-in-shared-libs")
    add_all(root, "/usr/bin/python3")


ALL = {"nothing": nothing, "musl": musl, "bullseye": bullseye}


def main():
    """Makes all roots; why one could not be made is in its .skip."""
    os.makedirs(WORK, exist_ok=True)
    for name, make in ALL.items():
        why = os.path.join(WORK, name + ".skip")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(why)
        try:
            make()
        except (harness.Skip, OSError) as e:
            with open(why, "w") as f:
                f.write(str(e))


if __name__ == "__main__":
    main()
