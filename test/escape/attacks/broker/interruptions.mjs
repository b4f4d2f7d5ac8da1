// tries: to keep the host at work by asking to be interrupted without end, over as many connections as it gets
// stopped by: the host interrupts once for all that asked, and rests from each interruption
// want: nothing

import { createConnection } from "node:net"

const CONNECTIONS = 15 // and the guest's own
const ASK = '{"jsonrpc":"2.0","id":1,"method":"run/interrupt","params":{}}\n'.repeat(50)

let heard = 0
process.on("SIGUSR1", () => heard++)
const connect = () => createConnection("/run/airlock/broker.sock").on("error", () => {}).resume()
const connections = Array.from({ length: CONNECTIONS }, connect)
const began = performance.now()
while (performance.now() - began < 2000) {
  for (const connection of connections) if (!connection.writableLength) connection.write(ASK)
  await new Promise((resolve) => setTimeout(resolve, 1))
}
for (const connection of connections) connection.destroy()
const most = (performance.now() - began) / 20 + 2
console.log(`interrupted ${heard} times`)
await attempt("be interrupted more often than every 25 ms", () => (heard > most ? heard : undefined))
