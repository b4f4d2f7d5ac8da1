// tries: to fetch credentials from a metadata service with fetch, as JavaScript would
// stopped by: the sandbox has a network stack of its own, with a loopback device of its own and no other
// want: nothing

for (const url of ['http://169.254.169.254/latest/meta-data/', 'http://metadata.google.internal/computeMetadata/v1/', 'http://[fd00:ec2::254]/latest/']) {
  await attempt(url, async () => (await fetch(url, { signal: AbortSignal.timeout(3000) })).status)
}
