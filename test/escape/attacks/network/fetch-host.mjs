// tries: to fetch from a server on the host's loopback with fetch and with net
// stopped by: the sandbox has a separate network stack whose only device is a separate loopback
// want: nothing
// on the host: succeeds

import net from 'node:net'
for (const host of ['127.0.0.1', 'localhost', '0.0.0.0']) {
  await attempt(`net ${host}`, () => new Promise((resolve, reject) => {
    const socket = net.connect({{tcp4_port}}, host)
    socket.on('data', data => { resolve(data.toString()); socket.destroy() })
    socket.on('error', reject)
  }))
}
