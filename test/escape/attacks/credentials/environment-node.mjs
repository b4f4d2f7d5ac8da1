// tries: to find a credential in the environment or the arguments of node
// stopped by: the environment is written down in the image; nothing of the host's gets in
// want: nothing
// on the host: succeeds

const known = new Set([
  'HOME', 'PATH', 'LANG', 'PWD', 'NODE_PATH', 'NODE_OPTIONS', 'NODE_COMPILE_CACHE', 'UV_THREADPOOL_SIZE',
])
await attempt('unknown variables', () => {
  const unknown = Object.keys(process.env).filter(name => !known.has(name))
  return unknown.length > 0 ? unknown : undefined
})
