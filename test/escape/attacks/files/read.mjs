// tries: to read the host's files from JavaScript
// stopped by: of the host's directories only the image, the wrappers and the run's own socket directory are there
// want: nothing
// on the host: succeeds

import fs from 'node:fs'
for (const path of ['{{world_file}}', '{{root_file}}', '/proc/1/root{{world_file}}']) {
  await attempt(path, () => fs.readFileSync(path, 'utf8'))
}
