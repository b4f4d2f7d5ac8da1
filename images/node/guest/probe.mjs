// Tries targets that a sandbox must not reach. The host sends them before the sandbox gets any code
// (docs/socket.md). In the image of a server it is a program:
//
//     /usr/bin/node probe.mjs KIND/ADDRESS/PORT ...

const dgram = process.getBuiltinModule("node:dgram");
const dns = process.getBuiltinModule("node:dns");
const { readFileSync } = process.getBuiltinModule("node:fs");
const net = process.getBuiltinModule("node:net");

const REACHED = "REACHED";

// A query for the name servers of the root, which every name server answers (RFC 1035, section 4).
const QUERY = Buffer.from("0001010000010000000000000000020001", "hex");

// CAP_NET_RAW is the capability to open raw sockets, which Node cannot do (capabilities(7)).
const CAP_NET_RAW = 1n << 13n;

const KINDS = {
  tcp: (address, port) =>
    new Promise((resolve) => {
      const socket = net.connect({ host: address, port, family: net.isIP(address) });
      socket.on("connect", () => {
        socket.destroy();
        resolve(REACHED);
      });
      socket.on("error", (cause) => resolve(cause.code));
    }),
  name: (name) => new Promise((resolve) => dns.lookup(name, (cause) => resolve(cause ? cause.code : REACHED))),
  raw: () => {
    const held = /^CapPrm:\s*(\w+)$/m.exec(readFileSync("/proc/self/status", "latin1"));
    return held && !(BigInt(`0x${held[1]}`) & CAP_NET_RAW) ? "EPERM" : REACHED;
  },
  ping: () => "ENOTSUP",
};

/** Sends a datagram, and returns a function that closes the socket and returns whether there was an answer. */
function udp(address, port) {
  const socket = dgram.createSocket(net.isIPv6(address) ? "udp6" : "udp4");
  let found = "EAGAIN";
  socket.on("message", () => {
    found = REACHED;
  });
  socket.on("error", (cause) => {
    found = cause.code;
  });
  const sent = new Promise((resolve) => {
    socket.send(QUERY, port, address, (cause) => {
      if (cause) found = cause.code;
      resolve();
    });
  });
  return async () => {
    await sent;
    socket.close();
    return found;
  };
}

/** Returns a line for each target: the target, and REACHED or the name of the error. */
export async function probe(targets) {
  const parts = targets.map((target) => target.split("/"));
  const datagrams = parts.map(([kind, address, port]) => kind === "udp" && udp(address, Number(port)));
  const found = await Promise.all(
    parts.map(([kind, address, port]) => (kind === "udp" ? undefined : KINDS[kind](address, Number(port)))),
  );
  // By now there was time for the answer to a datagram.
  for (const [i, answer] of datagrams.entries()) if (answer) found[i] = await answer();
  return targets.map((target, i) => `${target} ${found[i]}\n`).join("");
}

if (process.argv[1] === import.meta.filename) process.stdout.write(await probe(process.argv.slice(2)));
