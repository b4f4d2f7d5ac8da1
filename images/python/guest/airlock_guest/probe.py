"""Tries targets that a sandbox must not reach.

The host sends them before the sandbox gets any code (docs/socket.md). In the image of a server it is a program:

    /usr/bin/python3 -I -S -B probe.py KIND/ADDRESS/PORT ...
"""

import errno
import socket
import sys

REACHED = "REACHED"

# A query for the name servers of the root, which every name server answers (RFC 1035, section 4).
_QUERY = b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x01"

_ECHO = b"\x08\x00\xf7\xff\x00\x00\x00\x00"  # of ICMP, with its checksum (RFC 792)


def probe(targets):
    """Return a line for each target: the target, and REACHED or the name of the error."""
    found, waiting = {}, []
    # Datagrams first: there is time for their answers while the connections are tried.
    for target in sorted(targets, key=lambda t: not t.startswith(("udp/", "ping/"))):
        kind, address, port = target.split("/")
        try:
            found[target] = _KINDS[kind](address, int(port))
        except socket.gaierror as e:
            found[target] = "ENOTFOUND" if e.errno == socket.EAI_NONAME else "EAI_AGAIN"
        except OSError as e:
            found[target] = errno.errorcode.get(e.errno, "EIO")
        if isinstance(found[target], socket.socket):
            waiting.append(target)
    for target in waiting:
        with found[target] as s:
            try:
                s.recv(1)
                found[target] = REACHED
            except BlockingIOError:
                found[target] = "EAGAIN"
            except OSError as e:
                found[target] = errno.errorcode.get(e.errno, "EIO")
    return "".join(f"{target} {found[target]}\n" for target in targets)


def _family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _tcp(address, port):
    with socket.socket(_family(address), socket.SOCK_STREAM) as s:
        s.connect((address, port))
    return REACHED


def _datagram(s, message, address, port):
    s.setblocking(False)
    try:
        s.sendto(message, (address, port))
    except OSError:
        s.close()
        raise
    return s


def _udp(address, port):
    return _datagram(socket.socket(_family(address), socket.SOCK_DGRAM), _QUERY, address, port)


def _ping(address, port):
    return _datagram(socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), _ECHO, address, port)


def _name(name, port):
    socket.getaddrinfo(name, port)
    return REACHED


def _raw(family, protocol):
    socket.socket(getattr(socket, family), socket.SOCK_RAW, protocol).close()
    return REACHED


_KINDS = {"tcp": _tcp, "udp": _udp, "ping": _ping, "name": _name, "raw": _raw}

if __name__ == "__main__":
    sys.stdout.write(probe(sys.argv[1:]))
