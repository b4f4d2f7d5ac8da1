// tries: to start workers without end
// stopped by: threads count as processes, and memory is limited
// want: ProcessLimit or MemoryLimit

import { Worker } from 'node:worker_threads'
for (let i = 0; i < 500; i++) {
  try {
    new Worker('setTimeout(() => {}, 60000)', { eval: true }).on('error', () => {})
  } catch {} // the host has already seen it
}
await new Promise(resolve => setTimeout(resolve, 20000))
