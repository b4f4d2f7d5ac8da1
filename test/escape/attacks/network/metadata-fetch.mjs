// tries: to fetch credentials from a metadata service with fetch, as JavaScript would
// stopped by: the sandbox has a separate network stack whose only device is a separate loopback
// want: nothing

for (const url of [
  'http://169.254.169.254/latest/meta-data/', 'http://metadata.google.internal/computeMetadata/v1/',
  'http://[fd00:ec2::254]/latest/',
]) {
  await attempt(url, async () => (await fetch(url, { signal: AbortSignal.timeout(3000) })).status)
}
